"""Conversations for front ends that speak the UI message stream protocol of the AI SDK (the npm package `ai`, 7)."""
