"""A server whose machine has another clock: `python tests/shifted.py SECONDS PORT` serves with one that is ahead.

At the signals FORWARDS and BACKWARDS it jumps by ten minutes.
"""

import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from typing import Final

import time_machine
from django.core.management import execute_from_command_line

FORWARDS, BACKWARDS = signal.SIGUSR1, signal.SIGUSR2
JUMP: Final = timedelta(minutes=10)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitlchat.settings")
    ahead, port = sys.argv[1:]
    clock = time_machine.travel(datetime.now(UTC) + timedelta(seconds=float(ahead)), tick=True).start()
    for number, jump in ((FORWARDS, JUMP), (BACKWARDS, -JUMP)):
        signal.signal(number, lambda *_, jump=jump: clock.shift(jump))
    execute_from_command_line(["manage.py", "serve", "--port", port])


if __name__ == "__main__":
    main()
