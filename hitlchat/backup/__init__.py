"""Backups: one file that holds all an installation needs on another machine, and putting it back.

Why one is refused is here: each fault says what to do, and nothing was changed.
"""


class BackupFault(Exception):
    """A backup or a restore was refused; the message is for the operator."""


class Damaged(BackupFault):
    """The backup is cut, altered, or no backup."""


class BadPassphrase(BackupFault):
    """The passphrase is missing, unusable, or another one than the backup was encrypted with."""


class Unfit(BackupFault):
    """This version, or this database, cannot take the backup."""


class NotEmpty(BackupFault):
    """There is something where the backup, or what it holds, would go."""


class NotWhole(BackupFault):
    """What was restored is not what the backup says, or its record has findings."""
