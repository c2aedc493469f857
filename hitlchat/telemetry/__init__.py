"""What operators see of it from outside: numbers, logs, traces."""
