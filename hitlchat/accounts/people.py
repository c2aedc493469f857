"""The signed-in person of a request."""

from django.contrib.auth.models import User
from django.http import HttpRequest


def person(request: HttpRequest) -> User:
    """The user of a view behind `login_required`."""
    assert isinstance(request.user, User)
    return request.user
