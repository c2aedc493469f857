"""A server whose machine has another clock: `python tests/shifted.py SECONDS PORT` serves with one that is ahead."""

import os
import sys
from datetime import UTC, datetime, timedelta

import time_machine
from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitlchat.settings")
ahead, port = sys.argv[1:]
clock = time_machine.travel(datetime.now(UTC) + timedelta(seconds=float(ahead)), tick=True)
clock.start()
execute_from_command_line(["manage.py", "serve", "--port", port])
