"""Authored tools, as the gate executes them: code in the sandbox, with the host functions it was granted."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import Q

from hitlchat import sandbox
from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.gate import stopping
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.schema import BadArguments
from hitlchat.gate.sources import Preview, ToolResult
from hitlchat.sandbox import HostFunction, Limits, Report, Share, shares
from hitlchat.secrets.masking import Mask
from tools_studio import authoring, capabilities, network, spec, variables
from tools_studio.capabilities import ALL_NAMES, Capabilities, store
from tools_studio.capabilities.files import grants
from tools_studio.language import signature
from tools_studio.language.annotations import coerce
from tools_studio.models import Script, ScriptVersion, StoredVariable
from tools_studio.spec import SOURCE, AuthoringError, Unreadable, check, draft_of
from tools_studio.variables import Resolved

# Of its row in the gate: what follows from the code, and what models and people are told of it.
FOLLOWS: Final = ("definition_hash", "description", "input_schema", "output_schema", "risk_level", "facts")
UNSOUND: Final = (AuthoringError, Unreadable, ValueError, TypeError, AttributeError, KeyError)
MOST_REMEMBERED = 4096
# A little less than the gate waits, so that the author is told which limit it was.
PREVIEW_SECONDS = 4.5


def offered(granted: Capabilities, group: str, values: Resolved) -> dict[str, HostFunction]:
    """Return the granted functions by dotted name. `values` are this tool's variables."""
    every_value = {**values.plain, **values.secret}

    def value(name: str) -> str:
        """Return a variable for the server's own use, so that the tool need not see it."""
        return _one(name, every_value, "variable")

    async def variable(name: str) -> str:
        if name in values.secret:
            raise PermissionError(f"{name} is a secret: expected secret({name!r}), or fetch(..., auth={name!r})")
        return _one(name, values.plain, "plain variable")

    async def secret(name: str) -> str:
        if name in values.plain:
            raise ValueError(f"{name} is a plain variable: expected variable({name!r})")
        return _one(name, values.secret, "secret")

    every: dict[str, HostFunction] = {
        "now": _now,
        "variable": variable,
        "secret": secret,
        **store.store_grants(group),
        **grants(granted.files),
        **store.email_grants(granted.email),
        **network.grants(granted.fetch, granted.webhook, value),
    }
    return {name: every[name] for name in granted.names()}


def for_preview(granted: Capabilities, group: str, values: Resolved) -> dict[str, HostFunction]:
    """Return the functions for a preview: those that change something refuse, so that imports of them work."""
    reads = granted.read_only()
    return {name: _refusing(name) for name in granted.names()} | offered(reads, group, values)


def _refusing(name: str) -> HostFunction:
    async def refuse(*_args: object, **_named: object) -> None:
        raise PermissionError(f"{name} makes changes, but a preview may only read")

    return refuse


def _one(name: object, values: Mapping[str, str], kind: str) -> str:
    """Return the value of this name. Raises: ValueError, with the names there are"""
    if not isinstance(name, str) or name not in values:
        names = ", ".join(sorted(values)) or "none"
        raise ValueError(f"this tool has no {kind} {str(name)[:64]!r}; there is: {names}")
    return values[name]


async def _now(timezone: str = "UTC") -> datetime:
    try:
        return datetime.now(ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"now: {timezone!r} is not a time zone name such as Europe/Berlin") from error


def secrets(script: Script, granted: Capabilities) -> tuple[str, ...]:
    """Return the secrets of tools that share a store or folder with `script`, where it may read them."""
    if not granted.store and granted.files is None:
        return ()

    def is_shared_with(other: Script) -> bool:
        if granted.store and other.group == script.group:
            return True
        files = capabilities.parse(other.capabilities).files if granted.files else None
        return files is not None and granted.files is not None and files.folder == granted.files.folder

    may_hide = Q(secret=True) | Q(value__startswith="${")
    rows = StoredVariable.objects.filter(may_hide).exclude(script=script).select_related("script")
    shared = [row.stored for row in rows if is_shared_with(row.script)]
    return variables.resolve(shared).hidden


def altered() -> Iterator[str]:
    """Yield a sentence for each tool and version that does not match its hash."""
    for tool in Tool.objects.filter(source=SOURCE).select_related("script").order_by("name").iterator(chunk_size=100):
        if words := _differs(tool):
            yield words
    for version in ScriptVersion.objects.select_related("script__tool").order_by("pk").iterator(chunk_size=100):
        if _is_other(version):
            yield f"Version {version.number} of the tool {version.script.tool.name} does not match its hash."


def _differs(tool: Tool) -> str:
    def others(*, sections: bool) -> list[str]:
        sound = check(draft_of(tool), spec.stored_variables(tool.script), sections=sections)
        now = spec.columns(sound, tool.script.version)
        return [name.replace("_", " ") for name in FOLLOWS if getattr(tool, name) != now[name]]

    try:
        names = others(sections=True)
        # A tool that was saved before sections of docstrings were distinguished still has its former description.
        if not names or not others(sections=False):
            return ""
    except UNSOUND as error:
        return translatable(f"The stored tool {tool.name} does not match what was saved: {error}.")
    if "definition hash" in names:
        return translatable(f"The code or settings of the tool {tool.name} do not match the hash of its definition.")
    return translatable(f"The stored description of the tool {tool.name} does not match its code: {', '.join(names)}.")


def _is_other(version: ScriptVersion) -> bool:
    """Return whether the version does not match its hash; unknown with variables, whose values are not in it."""
    try:
        draft = spec.from_json(version.draft)
        return not draft.variables and version.definition_hash not in [
            check(draft, sections=sections).definition_hash for sections in (True, False)
        ]
    except UNSOUND:
        # Stored by an older version of hitlchat, with other rules; but what is no tool at all never was one.
        return not isinstance(version.draft, dict)


@dataclass(frozen=True)
class Loaded:
    """A tool with everything its code runs with. `hidden` is masked in whatever it says."""

    script: Script
    granted: Capabilities
    values: Resolved
    hidden: tuple[str, ...] = ()

    @property
    def obstacle(self) -> str | None:
        """Return why it must not run, in a sentence."""
        if self.script.revoked:
            return f"this tool was revoked: {self.script.revoked}"
        return " ".join(self.values.missing.values()) or None

    async def run(self, arguments: Mapping[str, Any]) -> Report:
        """Return the report of a run, without the tool's secrets. Raises: ValueError, the arguments do not fit"""
        grants = offered(self.granted, self.script.group, self.values)
        return await self._called("run", arguments, grants, self.granted)

    async def preview(self, arguments: Mapping[str, Any]) -> Report:
        """Return the report of its preview, which can change nothing and has less time."""
        grants = for_preview(self.granted, self.script.group, self.values)
        limits = Limits(wall_seconds=min(PREVIEW_SECONDS, Limits().wall_seconds))
        return await self._called(signature.PREVIEW, arguments, grants, self.granted.read_only(), limits)

    async def _called(
        self,
        name: str,
        arguments: Mapping[str, Any],
        grants: Mapping[str, HostFunction],
        powers: Capabilities,
        limits: Limits | None = None,
    ) -> Report:
        code, entry = signature.runnable(self.script.code, name)
        given = coerce(self.script.tool.input_schema, dict(arguments))
        report = await sandbox.run(
            code,
            given,
            entry=entry,
            grants=grants,
            powers=powers.powers(),
            offered=ALL_NAMES,
            limits=limits,
        )
        if not self.hidden:
            return report
        return await asyncio.to_thread(_masked, report, self.hidden)


class StudioSource:
    can_stop = True

    def __init__(self) -> None:
        # Definitions without a preview: asking about a call of theirs needs no look at the code.
        self._plain: set[str] = set()

    def hold(self, tools: Collection[UUID]) -> None:
        """Lock nothing: a change of an authored tool begins with its row."""

    def configure(self, tool: UUID, settings: Mapping[str, Any], actor: Actor) -> None:
        authoring.amend(Tool.objects.get(pk=tool), dict(settings), actor, confirmed=True)

    def outside(self, tools: set[UUID]) -> set[UUID]:
        rows = Script.objects.filter(pk__in=tools).values_list("pk", "capabilities")
        return {pk for pk, granted in rows if "fetch" in granted}

    def place_now(self, call: ToolCall) -> Share | None:
        return shares.now(str(call.caller_id))

    async def next_place(self, call: ToolCall, seconds: float, since: float) -> Share | None:
        return await shares.soon(str(call.caller_id), seconds, since=since)

    def unfit(self, tool: Tool, arguments: dict[str, Any]) -> BadArguments | None:
        try:
            sandbox.check_arguments(coerce(tool.input_schema, arguments), Limits())
        except sandbox.Stopped as stopped:
            return BadArguments(f"{stopped.fault.message[:1].upper()}{stopped.fault.message[1:]}.")
        except BadArguments as error:
            return BadArguments(f"{str(error).rstrip('.')}.", error.argument)
        return None

    async def execute(self, call: ToolCall) -> ToolResult:
        tool = await in_db(_loaded)(call.tool_id, call.definition_hash)
        if tool is None:
            return ToolResult.failure("changed", "It was not run: the tool was changed or deleted just now.")
        if tool.obstacle:
            return ToolResult.failure("unavailable", f"It was not run: {tool.obstacle}")
        try:
            report = await stopping.unless_stopped(call, tool.run(call.arguments))
        except ValueError as error:
            return ToolResult.failure("arguments", f"It was not run: {error}")
        if report is None:
            # Its process was killed, and what it had asked for was given up.
            who = await in_db(stopping.requested_by)(call)
            return ToolResult.failure("stopped", f"It was stopped by {who}. Anything it did before that is not undone.")
        if fault := report.fault:
            return ToolResult.failure(fault.kind, fault.message, fault.line, report.output)
        return ToolResult(value=report.result, output=report.output)

    async def preview(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> Preview | None:
        """Return the result of the tool's own `preview`; None if its code has none."""
        if tool.definition_hash in self._plain:
            return None
        loaded = await in_db(_loaded)(tool.pk, tool.definition_hash)
        if loaded is None:
            return None
        if signature.preview_of(loaded.script.code) is None:
            if len(self._plain) >= MOST_REMEMBERED:
                self._plain.clear()
            self._plain.add(tool.definition_hash)
            return None
        if loaded.obstacle:
            return Preview(error=loaded.obstacle)
        sandbox.on_behalf.set(str(caller.user_id))
        try:
            report = await loaded.preview(arguments)
        except ValueError as error:
            return Preview(error=str(error))
        if fault := report.fault:
            return Preview(error=f"{fault.message} (line {fault.line})" if fault.line else fault.message)
        return _shown(report.result)

    def altered(self) -> Iterator[str]:
        return altered()


def _masked(report: Report, hidden: Iterable[str]) -> Report:
    mask = Mask(hidden)
    fault = report.fault and replace(report.fault, message=mask.text(report.fault.message))
    return replace(report, result=mask.value(report.result), output=mask.text(report.output), fault=fault)


def _shown(result: Any) -> Preview:
    """Return a preview of a text or table as they are, of any other value as its JSON."""
    if result is None:
        return Preview(error="It returned nothing: expected a text, or a table as a list of objects.")
    is_table = isinstance(result, dict) or (isinstance(result, list) and all(isinstance(row, dict) for row in result))
    if isinstance(result, str) or (result and is_table):
        return Preview.of(result)
    return Preview(text=canonical.pretty(result))


def _loaded(tool_id: UUID | None, definition_hash: str) -> Loaded | None:
    """Return the tool with the values of its variables, if it still has this definition."""
    if tool_id is None:
        return None
    wanted = Script.objects.filter(tool_id=tool_id, tool__definition_hash=definition_hash)
    script = wanted.select_related("tool").first()
    if script is None:
        return None
    stored = spec.stored_variables(script)
    # Code and variables are read one after the other: a save in between would mix two versions.
    if not wanted.filter(version=script.version).exists():
        return None
    granted, values = capabilities.parse(script.capabilities), variables.resolve(stored.values())
    return Loaded(script, granted, values, (*values.hidden, *secrets(script, granted)))
