"""Who may see a page about people, and what each of these pages does with what it is told."""

from django.contrib import messages
from django.http import HttpRequest

from hitlchat.accounts.administrators import administrators_only

administrator_only = administrators_only("Only administrators may see and change people.")


def told(request: HttpRequest) -> list[str]:
    """What was just done."""
    return [str(each) for each in messages.get_messages(request)]
