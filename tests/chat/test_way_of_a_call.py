"""Counts how many files of the server one gated call crosses, from what a person says to the model's last word."""

import inspect
import sys
import threading
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, Final

import pytest

from tests.agent.talk import Talk, in_database
from tests.architecture.source import ROOT
from tests.chat.tab import Tab
from tests.conftest import MakeTool
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)

# With what the workers of the server do meanwhile, which is more on a busy machine.
MOST_FILES: Final = 99


class Way:
    """The functions that are entered while `follows`, in this thread and in all that begin meanwhile."""

    def __init__(self) -> None:
        self.follows, self.is_over = False, False
        self._entered: set[CodeType] = set()

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        if self.is_over:
            sys.setprofile(None)
        elif self.follows and event == "call":
            self._entered.add(frame.f_code)

    def taken(self) -> dict[CodeType, str]:
        """Our own functions with their files; what is not optimized is a module or a class, which importing runs."""
        own = tuple(f"{ROOT / package}/" for package in ("hitlchat", "tools_studio"))
        # In one step, since other threads go on.
        entered = self._entered.copy()
        self._entered.clear()
        found = {each: each.co_filename for each in entered if each.co_flags & inspect.CO_OPTIMIZED}
        return {each: file for each, file in found.items() if file.startswith(own)}


@pytest.fixture
def way() -> Iterator[Way]:
    found = Way()
    threading.setprofile(found.note)
    sys.setprofile(found.note)
    yield found
    found.is_over = True
    threading.setprofile(None)
    sys.setprofile(None)


async def asked_and_approved(word: str, tab: Tab, talk: Talk, model: ScriptedModel) -> None:
    model.enqueue(calls(("echo", {"text": word})))
    model.enqueue(text(f"Said {word}."))
    await tab.send(type="say", content=f"Say {word}")
    approval = await talk.only()
    await tab.until("data-approve")
    await tab.send(type="decide", approval=str(approval.pk), verdict="approve", digest=approval.digest)
    await tab.until(f"Said {word}.")


@pytest.mark.slow("notes every function that is entered")
async def test_a_gated_call_crosses_a_bounded_number_of_files(
    way: Way, tab: Tab, talk: Talk, scripted_model: ScriptedModel, make_tool: MakeTool
) -> None:
    await in_database(make_tool)("echo")
    # The first call also does what is done once in a process.
    await asked_and_approved("hi", tab, talk, scripted_model)
    way.follows = True
    rounds = []
    for word in ("ho", "hum", "ha", "hm"):
        await asked_and_approved(word, tab, talk, scripted_model)
        rounds.append(way.taken())
    files, functions = min((len({*each.values()}), len(each)) for each in rounds)
    print(f"\n{files:5} files and {functions} functions crossed by one gated call")  # noqa: T201  `make shape`
    assert files <= MOST_FILES
