#!/usr/bin/env python
"""Django's command line for hitlchat."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitlchat.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"manage.py: {error}")
    except OperationalError as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"manage.py: The database cannot be used: {error}\n`manage.py doctor` says what is wrong with it.")
