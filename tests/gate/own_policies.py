"""Policies of an operator's own: one that works, and many that do not."""

import asyncio
import threading
from typing import Any, Final

from hitlchat.gate.models import Tool
from hitlchat.gate.policies import Abstain, Allow, Ask, CallView, Context, Refuse, ToolView

HERE: Final = "tests.gate.own_policies"
# For those that hang: opened by the test when it has seen enough.
let_go = threading.Event()
# Set once one of them hangs in a task.
hanging = threading.Event()


class OnlyText:
    """Refuse any text but one."""

    version = 1

    def __init__(self, text: str) -> None:
        self.text = text

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        given = call.arguments.get("text")
        return Allow("Not asked because it is that text.") if given == self.text else Refuse("Refused: another text.")


class Asynchronous:
    async def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        await asyncio.sleep(0)
        return Allow(f"Not asked: {call.user_name}, {call.caller_kind}, {tool.name}, {context.now:%Y}.")


class Says:
    """Whatever it is told to, which may be nonsense."""

    def __init__(self, what: str) -> None:
        self.what = what

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        return NONSENSE[self.what]()


class Tagged:
    """Refuse, and tell programs by which rule of the house."""

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        return Refuse("Refused by the house rules.", metadata={"rule": "H-7", "severity": 3, "tenant": call.user_name})


class Inside:
    """Refuse values that come from outside."""

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        return Refuse("From outside.") if call.args_from_outside else Allow("From inside.")


class Lying(Allow):
    """No Allow, though it says that it is one."""


class Saying(str):
    """A text of a kind of its own."""


NONSENSE: Final[dict[str, Any]] = {
    "text": lambda: "allow",
    "nothing": lambda: None,
    "true": lambda: True,
    "a class": lambda: Allow,
    "a derived class": lambda: Lying("fine"),
    "no reason": lambda: Allow(""),
    "a reason that is no text": lambda: Allow(17),  # type: ignore[arg-type]
    "a reason of another class": lambda: Allow(Saying("fine")),
    "a coroutine": lambda: asyncio.sleep(0),
    "metadata that is no object": lambda: Allow("fine", ["a"]),  # type: ignore[arg-type]
    "metadata with a number for a name": lambda: Allow("fine", {1: "a"}),  # type: ignore[dict-item]
    "metadata that is no JSON": lambda: Allow("fine", {"a": object()}),
    "too much metadata": lambda: Allow("fine", {"a": "b" * 2000}),
    "a tuple": lambda: (Allow("fine"),),
}


class Raises:
    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        raise RuntimeError("a secret of the policy")


class RunsOut:
    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        return next(iter(()))


class RaisesLater:
    async def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        raise RuntimeError("a secret of the policy")


class Exits:
    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        raise SystemExit(3)


class ExitsLater:
    async def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        raise SystemExit(3)


class Unheard(BaseException):
    """Derived from what hardly anyone catches."""


class RaisesUnheard:
    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        raise Unheard("a secret of the policy")


class RaisesUnheardLater:
    async def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        raise Unheard("a secret of the policy")


class ClosesLater:
    async def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        raise GeneratorExit


class GivesUp:
    async def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        raise asyncio.CancelledError


class Hangs:
    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        let_go.wait(60)
        return Allow("far too late")


class HangsLater:
    async def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        hanging.set()
        await asyncio.Event().wait()


class Deletes:
    """Gets rid of the tool that it is asked about."""

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        Tool.objects.filter(pk=tool.id).delete()
        return Allow("Gone.")


class NeedsDatabase:
    """Of a database that is gone."""

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        return Allow("There.") if Tool.objects.using("gone").exists() else Ask("Not there.")


class Changes:
    """Takes what it is told for its own."""

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        call.arguments["text"] = "something else"
        call.arguments["amount"] = 0
        return Abstain()


class Unmakeable:
    def __init__(self) -> None:
        raise RuntimeError("not today")

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        return Allow("Made.")


class Mute:
    """No policy at all."""


BROKEN: Final[dict[str, dict[str, Any]]] = {
    **{what: {"policy": f"{HERE}.Says", "what": what} for what in NONSENSE},
    **{
        kind.__name__: {"policy": f"{HERE}.{kind.__name__}"}
        for kind in (
            *(Raises, RaisesLater, RaisesUnheard, RaisesUnheardLater, ClosesLater),
            *(Exits, ExitsLater, GivesUp, NeedsDatabase, RunsOut),
        )
    },
}
HANGING: Final = [{"policy": f"{HERE}.{kind.__name__}"} for kind in (Hangs, HangsLater)]
