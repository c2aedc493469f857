"""Asking one rule about one call. Never raises, and never takes longer than its time: what goes wrong means ask."""

import asyncio
import copy
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from django.db import connections

from hitlchat.base.canonical import storable
from hitlchat.gate.policies.rule import CallView, Context, Rule, ToolView
from hitlchat.gate.policies.verdicts import Abstain, Allow, Ask, Refuse, Said, Unusable

logger = logging.getLogger(__name__)

LONGEST_REASON: Final = 300
# A rule that hangs keeps its thread for ever.
MOST_THREADS: Final = 64

_free = threading.BoundedSemaphore(MOST_THREADS)


class NoAnswer(Exception):
    """Why, in words for a person."""


async def consult(rule: Rule, call: CallView, tool: ToolView, context: Context) -> Said:
    try:
        if not rule.is_own:
            said = rule.evaluate(call, tool, context)
            return await said if inspect.isawaitable(said) else said  # type: ignore[no-any-return]
        # Each its own arguments: what one rule changes in them, no other one may see.
        alone = replace(call, arguments=copy.deepcopy(call.arguments))
        return _read(await _in_time(_entered(rule, alone, tool, context)))
    except NoAnswer as why:
        logger.warning("Policy %s, call of %s: %s", rule.name, call.tool_name, why)
        return Unusable(f"Asked because the policy {rule.name} {why}.")
    except Exception:
        logger.exception("Policy %s failed about a call of %s", rule.name, call.tool_name)
        return Unusable(f"Asked because the policy {rule.name} failed.")


async def _entered(rule: Rule, call: CallView, tool: ToolView, context: Context) -> Any:
    try:
        if inspect.iscoroutinefunction(rule.evaluate):
            return await rule.evaluate(call, tool, context)
        return await _in_thread(lambda: rule.evaluate(call, tool, context))
    except (SystemExit, KeyboardInterrupt) as error:
        # They would end the whole server.
        raise NoAnswer(f"tried to end the server ({type(error).__name__})") from error
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        # Whatever else a class may be derived from: above here nobody expects it.
        logger.exception("A policy ended in an unusual way")
        raise NoAnswer(f"ended with {type(error).__name__}") from error


async def _in_time(work: Awaitable[Any]) -> Any:
    task = asyncio.ensure_future(work)
    try:
        # Not asyncio.timeout: that waits for the end of what was cancelled, and so for what doesn't end.
        done, _ = await asyncio.wait([task], timeout=settings.HITL_POLICY_SECONDS)
    finally:
        task.cancel()
    if not done:
        raise NoAnswer(f"gave no answer within {settings.HITL_POLICY_SECONDS} seconds")
    if task.cancelled():
        raise NoAnswer("gave itself up")
    return task.result()


async def _in_thread(function: Callable[[], Any]) -> Any:
    if not _free.acquire(blocking=False):
        raise NoAnswer(f"could not be asked, since {MOST_THREADS} policies are hanging already")
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(function())
        except Exception:
            logger.exception("A policy failed")
            future.set_exception(NoAnswer("failed"))
        except BaseException as error:
            # Also what ends a program: nobody is told of it otherwise, and the call would wait its time out.
            logger.exception("A policy ended in an unusual way")
            future.set_exception(NoAnswer(f"ended with {type(error).__name__}"))
        finally:
            # The thread ends here, and nobody else could close what it opened.
            connections.close_all()
            _free.release()

    threading.Thread(target=run, daemon=True, name="policy").start()
    return await asyncio.wrap_future(future)


def _read(said: Any) -> Said:
    """Exactly one of the answers there are: of a class derived from one, nobody can say what it means."""
    if type(said) is Abstain:
        return said
    if type(said) not in (Allow, Ask, Refuse):
        if inspect.iscoroutine(said):
            said.close()
        raise NoAnswer(f"answered with {type(said).__name__}, which is neither Allow, Ask, Refuse nor Abstain")
    reason = said.reason
    if type(reason) is not str or not reason.strip():
        raise NoAnswer("gave no reason in words")
    kept: Said = type(said)(storable(reason.strip()[:LONGEST_REASON]))
    return kept
