"""Telemetry: numbers, logs and traces for operators."""
