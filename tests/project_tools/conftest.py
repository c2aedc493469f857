"""Functions that a test declares with @tool are tools for as long as it lasts."""

from collections.abc import Callable, Iterator

import pytest

from hitlchat.project_tools import DECLARED, catalogue
from hitlchat.project_tools.source import keep_in_step
from tests.processes import installation, migrated, servers

__all__ = ["installation", "migrated", "servers"]

Offer = Callable[[], None]


@pytest.fixture
def declared() -> Iterator[None]:
    """Begins with no function declared, and takes back what the test declares."""
    before = DECLARED[:]
    DECLARED.clear()
    catalogue.load()
    yield
    DECLARED[:] = before
    catalogue.load()


@pytest.fixture
def offer(transactional_db: None, declared: None) -> Offer:
    """Do what a server does when it starts. The database comes first: emptying it at the end is a migration to
    Django, after which rows are made for whatever is declared by then.
    """

    def start() -> None:
        catalogue.load()
        keep_in_step()

    return start
