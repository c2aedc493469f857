"""What was just done, told once on the next page."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest


@dataclass(frozen=True)
class Told:
    """A sentence, and whether it is a caution."""

    text: str
    caution: bool


def tell(request: HttpRequest, text: str, *, caution: bool = False) -> None:
    messages.add_message(request, messages.WARNING if caution else messages.SUCCESS, text)


def take(request: HttpRequest) -> list[Told]:
    """All that was not told yet, which is then told."""
    return [Told(str(each), each.level == messages.WARNING) for each in messages.get_messages(request)]


def calls(count: int, words: str) -> str:
    """“1 call was withdrawn.”; empty if there was none."""
    if not count:
        return ""
    return f" {count:,} {'call' if count == 1 else 'calls'} {'was' if count == 1 else 'were'} {words}."
