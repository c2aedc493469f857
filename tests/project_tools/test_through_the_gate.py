"""Functions of the project meet the one gate: asked about, approved, executed once, told as it was."""

import threading
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import connection

from hitlchat.gate import decide, tools
from hitlchat.gate.actor import SYSTEM, Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.project_tools import DECLARED, ToolError, tool
from tests.architecture.source import program_files, read
from tests.gate.asking import approval_of, approved, ask, fresh, run, say_yes, status
from tests.project_tools.conftest import Offer

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Receipt:
    order: str
    amount: Decimal
    on: date


@pytest.fixture
def entered(offer: Offer) -> list[str]:
    """What the function `refund` was called with; its tool takes its mode from its risk of 3."""
    seen: list[str] = []

    @tool(risk=3, prompt="Refund {args.order}?")
    def refund(order: str, amount: Decimal, on: date = date(2026, 1, 2)) -> Receipt:
        """Pay money back."""
        seen.append(order)
        return Receipt(order, amount, on)

    offer()
    return seen


def the(name: str) -> Tool:
    return Tool.objects.get(name=name)


def result(user: User, name: str, arguments: dict[str, Any] | None = None) -> ToolCall:
    """What becomes of a call of a tool that never asks."""
    call = ask(user, the(name), arguments or {})
    assert run(call)
    return fresh(call)


def failure(user: User, name: str, arguments: dict[str, Any] | None = None) -> str:
    call = result(user, name, arguments)
    assert (call.status, call.result) == (Status.FAILED, None)
    return str(call.error["message"])


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-funnel", "SR-32")
def test_a_function_that_asks_runs_after_a_yes_and_not_before(bob: User, entered: list[str]) -> None:
    call = ask(bob, the("refund"), {"order": "A-1", "amount": "12.50"})
    assert (status(call), run(call), entered) == (Status.WAITING, False, [])
    say_yes(bob, call)
    assert (run(call), run(call), entered) == (True, False, ["A-1"])
    assert fresh(call).result == {"order": "A-1", "amount": "12.50", "on": "2026-01-02"}


def test_the_card_says_what_it_is(bob: User, entered: list[str]) -> None:
    shown = approval_of(ask(bob, the("refund"), {"order": "A-1", "amount": 3})).disclosure
    assert shown["prompt"] == "Refund A-1?"
    assert shown["tool"]["origin"].endswith("refund of this server's own project")
    assert shown["arguments"] == {"order": "A-1", "amount": 3, "on": "2026-01-02"}
    assert (shown["risk"], "not in the sandbox" in shown["facts"][0]) == (3, True)


def test_arguments_that_do_not_fit_ask_nobody(bob: User, entered: list[str]) -> None:
    call = ask(bob, the("refund"), {"order": "A-1", "amount": "much", "extra": 1})
    assert (call.status, entered) == (Status.REJECTED, [])


def test_a_condition_decides_where_the_mode_says_so(bob: User, offer: Offer) -> None:
    @tool(risk=2, hitl="CONDITIONAL", condition='args["n"] > 10')
    def count(n: int) -> int:
        return n

    offer()
    assert status(ask(bob, the("count"), {"n": 11})) == Status.WAITING
    assert result(bob, "count", {"n": 10}).result == 10


@pytest.mark.guarantee("gate:fail-closed", "gate:no-yes-no-run")
def test_a_function_decides_whether_to_ask_and_without_an_answer_a_person_is_asked(bob: User, offer: Offer) -> None:
    said: list[Any] = []

    def is_large(n: int, caller: Caller) -> bool:
        if n == 13:
            raise ZeroDivisionError
        said.append((n, caller.user_name))
        return n > 10 if n < 100 else "no"  # type: ignore[return-value]

    @tool(risk=2, hitl="CONDITIONAL", condition=is_large)
    def count(n: int) -> int:
        return n

    offer()
    assert the("count").condition.endswith("is_large()")
    assert result(bob, "count", {"n": 10}).result == 10
    for n in (11, 13, 100):
        call = ask(bob, the("count"), {"n": n})
        assert (status(call), "could not be evaluated" in call.reason) == (Status.WAITING, n != 11)
    assert said == [(10, "bob"), (11, "bob"), (100, "bob")]
    # A process with other code has only its name.
    Tool.objects.filter(name="count").update(definition_hash="other")
    assert status(ask(bob, the("count"), {"n": 1})) == Status.WAITING
    # The row names another condition than the code does.
    offer()
    assert ask(bob, the("count"), {"n": 1}).status == Status.ALLOWED
    tools.change(the("count").pk, {"condition": "args['n'] > 0"}, SYSTEM)
    assert status(ask(bob, the("count"), {"n": 1})) == Status.WAITING


async def _double(n: int) -> int:
    """Twice as much."""
    return 2 * n


def test_an_async_function_runs_too(bob: User, offer: Offer) -> None:
    tool(risk=0)(_double)
    offer()
    assert result(bob, "_double", {"n": 4}).result == 8


@pytest.mark.servers("row locks tell two at a time apart")
def test_a_plain_function_uses_the_orm_in_a_thread_of_its_own(bob: User, offer: Offer) -> None:
    threads: list[threading.Thread] = []

    @tool(risk=1, hitl="DISABLED")
    def rename(to: str) -> list[str]:
        threads.append(threading.current_thread())
        User.objects.filter(username="bob").update(first_name=to)
        return list(User.objects.values_list("first_name", flat=True))

    offer()
    assert result(bob, "rename", {"to": "Robert"}).result == ["Robert"]
    assert threads[0] is not threading.main_thread()
    bob.refresh_from_db()
    assert bob.first_name == "Robert"


def test_the_caller_is_told_to_a_function_that_wants_to_know(bob: User, offer: Offer) -> None:
    @tool(risk=0)
    def who(caller: Caller) -> dict[str, Any]:
        return {"kind": caller.kind, "id": caller.user_id, "name": caller.user_name}

    offer()
    assert result(bob, "who").result == {"kind": "chat", "id": bob.pk, "name": "bob"}


class Secretive(ValueError): ...


@pytest.mark.guarantee("gate:truth")
@pytest.mark.parametrize(
    "error, is_async", [(ToolError("No such order."), False), (ValueError("No such order."), True)]
)
def test_what_a_function_means_to_say_is_told(error: Exception, is_async: bool, bob: User, offer: Offer) -> None:
    declare_raising(error, is_async)
    offer()
    assert failure(bob, "fails") == "No such order."


@pytest.mark.parametrize(
    "error, is_async",
    [
        (KeyError("pass phrase"), False),
        (Secretive("pass phrase"), True),
        (ValidationError("pass phrase"), False),
        (SystemExit("pass phrase"), False),
        (SystemExit("pass phrase"), True),
    ],
    ids=repr,
)
def test_of_other_errors_only_the_log_has_the_words(
    error: BaseException, is_async: bool, bob: User, offer: Offer, caplog: pytest.LogCaptureFixture
) -> None:
    declare_raising(error, is_async)
    offer()
    call = result(bob, "fails")
    assert call.error["message"].startswith("It failed inside the function. See the server's log")
    assert (str(call.pk) in call.error["message"], "pass phrase" in str(call.error)) == (True, False)
    assert (str(call.pk) in caplog.text, "pass phrase" in caplog.text) == (True, True)


def declare_raising(error: BaseException, is_async: bool) -> None:
    def fails() -> None:
        raise error

    async def fails_later() -> None:
        raise error

    tool(risk=0, name="fails")(fails_later if is_async else fails)


@pytest.mark.parametrize("value", [object(), float("nan"), {1, object()}, User], ids=["object", "nan", "set", "class"])
def test_a_result_that_is_no_json_is_a_failure_that_says_so(value: Any, bob: User, offer: Offer) -> None:
    @tool(risk=0)
    def give() -> Any:
        return value

    offer()
    assert failure(bob, "give").startswith("It was run, but returned a ")


def test_a_result_that_is_too_large_is_a_failure_that_names_the_limit(bob: User, offer: Offer) -> None:
    @tool(risk=0)
    def give() -> str:
        return "x" * 2**20

    offer()
    assert failure(bob, "give") == "It was run, but its result has 1,048,578 bytes; at most 1,048,576 can be stored."


@pytest.mark.guarantee("gate:truth")
def test_nobody_is_asked_about_arguments_that_only_the_types_refuse(bob: User, entered: list[str]) -> None:
    call = ask(bob, the("refund"), {"order": "A-1", "amount": "NaN", "on": "2026-01-02"})
    assert (call.status, call.reason.startswith("amount: ")) == (Status.REJECTED, True)
    assert not hasattr(call, "approval")
    assert entered == []


def test_arguments_that_only_the_types_refuse_are_no_edit(bob: User, entered: list[str]) -> None:
    call = ask(bob, the("refund"), {"order": "A-1", "amount": "1", "on": "2026-01-02"})
    assert call.status == Status.WAITING
    with pytest.raises(decide.BadEdit, match="amount: "):
        decide.checked({"order": "A-1", "amount": "NaN", "on": "2026-01-02"}, fresh(call))
    assert entered == []


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:same-call")
@pytest.mark.parametrize("answered", [False, True], ids=["waiting", "approved"])
def test_a_changed_function_voids_what_was_asked_about_the_old_one(
    answered: bool, bob: User, offer: Offer, entered: list[str]
) -> None:
    arguments = {"order": "A-1", "amount": 1}
    call = approved(bob, the("refund"), arguments) if answered else ask(bob, the("refund"), arguments)
    DECLARED.clear()

    @tool(risk=3, prompt="Refund {args.order}?")
    def refund(order: str, amount: Decimal, on: date = date(2026, 1, 2)) -> Receipt:
        """Pay money back."""
        entered.append("the new one")
        return Receipt(order, amount * 2, on)

    offer()
    assert (status(call), fresh(call).reason) == (Status.WITHDRAWN, "Not run: the function was changed.")
    assert (run(call), entered, the("refund").published) == (False, [], True)


@pytest.mark.guarantee("gate:same-call")
def test_a_process_with_other_code_does_not_run_it(bob: User, entered: list[str]) -> None:
    Tool.objects.filter(name="refund").update(definition_hash="e" * 64)
    call = approved(bob, the("refund"), {"order": "A-1", "amount": 1})
    assert run(call)
    assert (
        fresh(call).error["message"].startswith("It was not run: This server process has different code for this tool.")
    )
    assert entered == []


def test_a_preview_of_the_function_is_on_the_card(bob: User, offer: Offer) -> None:
    def before(n: int, caller: Caller) -> list[dict[str, Any]]:
        return [{"who": caller.user_name, "n": n, "day": date(2026, 1, 2)}]

    @tool(risk=3, preview=before)
    def count(n: int) -> int:
        return n

    offer()
    shown = approval_of(ask(bob, the("count"), {"n": 4})).disclosure["preview"]
    assert shown["table"] == {"columns": ["who", "n", "day"], "rows": [["bob", "4", "2026-01-02"]]}


def test_a_preview_that_fails_says_so_and_no_more(bob: User, offer: Offer) -> None:
    def before(n: int) -> str:
        raise KeyError("pass phrase")

    @tool(risk=3, preview=before)
    def count(n: int) -> int:
        return n

    offer()
    error = approval_of(ask(bob, the("count"), {"n": 4})).disclosure["preview"]["error"]
    assert error.startswith("It failed inside the function")
    assert "pass phrase" not in error


def test_connections_of_threads_are_closed(bob: User, offer: Offer) -> None:
    kept: list[Any] = []

    @tool(risk=0)
    def look() -> int:
        kept.append(connection.cursor().db)
        return 1

    offer()
    result(bob, "look")
    assert kept[0].connection is None


@pytest.mark.guarantee("gate:one-funnel")
def test_functions_are_called_in_one_place_for_the_source_alone() -> None:
    ours = [path for path in program_files() if path.startswith("hitlchat/project_tools/")]
    assert [path for path in ours if "job.call()" in read(path)] == ["hitlchat/project_tools/source.py"]
    assert [path for path in program_files() if "run_job(" in read(path)] == ["hitlchat/project_tools/source.py"]
