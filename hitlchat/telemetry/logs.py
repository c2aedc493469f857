"""The log as JSON, one object a line: `at`, `level`, `logger`, `message`, and what an event has besides."""

from pythonjsonlogger.json import JsonFormatter


class Formatter(JsonFormatter):
    def __init__(self) -> None:
        renamed = {"asctime": "at", "levelname": "level", "name": "logger", "exc_info": "exception"}
        super().__init__("{asctime}{levelname}{name}{message}", style="{", rename_fields=renamed)
        self.default_time_format = "%Y-%m-%dT%H:%M:%S"
        self.default_msec_format = "%s.%03d"
