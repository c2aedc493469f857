"""Check a tool before it is saved: size, types, whether the interpreter takes its definitions, and what is doubtful."""

import logging
from collections.abc import Collection
from typing import Any

from hitlchat.sandbox.engine import check_size, described, is_async, ordered
from hitlchat.sandbox.faults import warnings
from hitlchat.sandbox.grants import awaitable, names_in
from hitlchat.sandbox.limits import Limits
from hitlchat.sandbox.wire import Problem, Stopped

logger = logging.getLogger(__name__)

WALL_SECONDS = 15.0


async def check(
    source: str,
    *,
    stubs: str = "",
    powers: Collection[str] = (),
    known: Collection[str] = (),
    entry: str = "run",
    limits: Limits | None = None,
    advise: bool = False,
) -> list[Problem]:
    """Return what is wrong with `source`, for the editor; an empty list means fine.

    `stubs` declares the module `hitl` as this tool may use it, with plain `def` also for `async def` tools. With
    `advise` the list ends with what runs but may surprise, as problems of severity "warning".
    """
    limits = limits or Limits()
    together = is_async(source, entry)
    order = {"do": "check", "entry": entry, "together": together, "seconds": WALL_SECONDS}
    try:
        check_size(source, limits)
        order["stubs"] = awaitable(stubs) if together else stubs
        order |= described(source, names_in(stubs), powers, known, limits)
        found = await _problems(order)
    except Stopped as stopped:
        return [Problem(stopped.fault.line, None, stopped.fault.message)]
    except Exception:
        logger.exception("the check failed")
        return [Problem(None, None, "the check failed; the log says how")]
    return [*found, *(warnings(source) if advise else [])]


async def _problems(order: dict[str, Any]) -> list[Problem]:
    report = await ordered(order, WALL_SECONDS)
    return [Problem(**problem) for problem in report["problems"]]
