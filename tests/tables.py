"""Tables of facts that need nothing of their own: one test for all rows, each of which is a subtest."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from django.db import connection, transaction

Test = Callable[..., Any]

LONGEST: Final = 100  # of the words for a row
SUBTESTS: Final = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)


def each_row(names: str, rows: Iterable[Any], ids: Any = None) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, but all rows share one test with its fixtures.

    In a test that is rolled back at its end, so is each row.
    """
    keys = [name.strip() for name in names.split(",")]
    listed = [*rows]
    words = [*map(ids or repr, listed)] if ids is None or callable(ids) else [*map(str, ids)]

    def arguments() -> Iterator[tuple[str, dict[str, Any]]]:
        for word, row in zip(words, listed, strict=True):
            yield word[:LONGEST], dict(zip(keys, [row] if len(keys) == 1 else row, strict=True))

    def decorated(test: Test) -> Test:
        signature = inspect.signature(test)
        parameters = [each for name, each in signature.parameters.items() if name not in keys]
        is_nested = "subtests" in signature.parameters

        @functools.wraps(test)
        def every(subtests: pytest.Subtests, **fixtures: Any) -> None:
            more = {"subtests": subtests} if is_nested else {}
            for word, row in arguments():
                with subtests.test(msg=word), rolled_back():
                    test(**fixtures, **row, **more)

        @functools.wraps(test)
        async def every_soon(subtests: pytest.Subtests, **fixtures: Any) -> None:
            more = {"subtests": subtests} if is_nested else {}
            for word, row in arguments():
                with subtests.test(msg=word):
                    await test(**fixtures, **row, **more)

        made: Any = every_soon if inspect.iscoroutinefunction(test) else every
        made.__signature__ = signature.replace(parameters=parameters if is_nested else [*parameters, SUBTESTS])
        return made  # type: ignore[no-any-return]

    return decorated


@contextmanager
def rolled_back() -> Iterator[None]:
    if not connection.in_atomic_block:
        yield
        return
    row: Any = transaction.atomic()
    # As Django marks its own: the test is no transaction that a durable one could be inside of.
    row._from_testcase = True
    with row:
        yield
        transaction.set_rollback(True)
