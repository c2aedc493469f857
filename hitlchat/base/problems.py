"""Problems: what somebody asked for cannot be, for a reason that they can read and act on."""

from collections.abc import Mapping
from typing import ClassVar

from django.core.exceptions import PermissionDenied
from django.http import Http404


class Problem(Exception):
    """One sentence for whoever asked. `status`: what HTTP calls it (RFC 9110); the API answers with it, and with the
    `code`, a word for programs, where there is one.
    """

    status: int = 409
    code: ClassVar[str] = ""


class NotFound(Problem, LookupError, Http404):
    """Nothing is there, or it is somebody else's: both look the same from outside (SR-21). A page says so by itself."""

    status = 404


class Forbidden(Problem, PermissionDenied):
    """Others may do this, and whoever asked may not. A page says so by itself."""

    status = 403


class Conflict(Problem):
    """Things are otherwise by now than whoever asked takes them to be."""


class Invalid(Problem, ValueError):
    """Fields of what was sent do not fit, and nothing was written. `errors`: what was expected, by their names.

    A kind of it that concerns one `field` alone is raised with a sentence; the errors of a kind that has a part of the
    body to itself are `within` that part.
    """

    status = 422
    field: ClassVar[str] = ""
    within: ClassVar[str] = ""

    def __init__(self, errors: Mapping[str, str] | str) -> None:
        self.errors = {self.field: errors} if isinstance(errors, str) else dict(errors)
        super().__init__(" ".join(self.errors.values()))
