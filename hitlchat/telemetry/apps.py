from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    name = "hitlchat.telemetry"
    label = "telemetry"
