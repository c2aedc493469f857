"""Problems: a request cannot be fulfilled, for a reason that a person can read and act on."""

from collections.abc import Mapping
from typing import ClassVar, TypeVar

from django.core.exceptions import PermissionDenied
from django.http import Http404

T = TypeVar("T")


class Problem(Exception):
    """One sentence for the caller, that of the class unless given. `status`: that of HTTP (RFC 9110); the API answers
    with it, and with the `code`, a word for programs, where there is one.
    """

    status: int = 409
    code: ClassVar[str] = ""
    sentence: ClassVar[str] = ""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(sentence or self.sentence)


class NotFound(Problem, LookupError, Http404):
    """Nothing is there, or it is somebody else's: both look the same from outside (SR-21). A page says so by itself."""

    status = 404


class Forbidden(Problem, PermissionDenied):
    """Others may do this, and the caller may not. A page says so by itself."""

    status = 403


class Conflict(Problem):
    """The state has changed since the caller looked."""


class Invalid(Problem, ValueError):
    """Fields of the request are invalid, and nothing was written. `errors`: expectations by the names of fields.

    A subclass for one `field` is raised with a sentence; the errors of a subclass for a part of the body are `within`
    that part.
    """

    status = 422
    field: ClassVar[str] = ""
    within: ClassVar[str] = ""

    def __init__(self, errors: Mapping[str, str] | str | None = None) -> None:
        errors = self.sentence if errors is None else errors
        self.errors = {self.field: errors} if isinstance(errors, str) else dict(errors)
        super().__init__(" ".join(self.errors.values()))


def required(found: T | None, problem: Exception | type[Exception]) -> T:
    """Return what was found. Raises: `problem`, if that is nothing."""
    if found is None:
        raise problem
    return found
