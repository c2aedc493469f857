"""Request bodies, read as the gate reads JSON: nothing that two readers could take for different things."""

from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from hitlchat.base import canonical


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        return canonical.loads(request.body)
