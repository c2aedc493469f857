import pytest

from tests.outbound.resolving import answering

answers = pytest.fixture(answering)
