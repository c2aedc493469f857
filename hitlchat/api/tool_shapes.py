"""From the rows of tools to what the API gives."""

from django.db.models import QuerySet

from hitlchat.api import tool_schemas as schemas
from hitlchat.api.shapes import approval_id, error
from hitlchat.gate import models as gate
from hitlchat.gate.models import HitlMode
from hitlchat.gate.results import MESSAGES
from hitlchat.gate.status import Status
from tools_studio import outcomes, trials, variables
from tools_studio.exchange import Step
from tools_studio.models import Script, TestCase
from tools_studio.variables import Kept
from tools_studio.versions import Save


def tools() -> QuerySet[gate.Tool]:
    """With all that `tool` needs."""
    return trials.with_tested(gate.Tool.objects.select_related("script").prefetch_related("script__variables"))


def tool(row: gate.Tool, *, for_author: bool) -> schemas.Tool:
    script: Script | None = getattr(row, "script", None)
    kept = [Kept(each.name, each.secret, each.value) for each in script.variables.all()] if script else []
    return schemas.Tool(
        name=row.name,
        title=row.title,
        description=row.description,
        code=script.code if script else None,
        capabilities=script.capabilities if script else {},
        variables=[_variable(each, for_author=for_author) for each in kept],
        hitl_mode=_mode(row.hitl_mode),
        prompt_template=row.prompt_template,
        condition=row.condition,
        example=row.example,
        source=row.source,
        input_schema=row.input_schema,
        output_schema=row.output_schema,
        risk_level=row.risk_level,
        published=row.published,
        group=script.group if script else None,
        category=script.category if script else None,
        tags=script.tags if script else [],
        deadline_seconds=row.deadline_seconds,
        signed_in_only=row.signed_in_only,
        version=script.version if script else None,
        tested=row.tested,  # type: ignore[attr-defined]  # annotated by `tools`
        missing_variables=sorted(variables.resolve(kept).missing),
        revoked=script.revoked if script else "",
    )


def _variable(kept: Kept, *, for_author: bool) -> schemas.Variable:
    return schemas.Variable(name=kept.name, secret=kept.secret, value=kept.shown().value if for_author else None)


def _mode(mode: str) -> schemas.HitlModeName:
    return HitlMode(mode).value  # type: ignore[return-value]  # the database holds it to the same words


def trial(row: gate.ToolCall) -> schemas.TrialResult:
    return schemas.TrialResult(
        ok=row.status == Status.SUCCEEDED,
        result=row.result,
        output=row.output,
        error=_trial_fault(row),
        duration_ms=row.duration_ms or 0,
        call_id=row.pk,
        approval_id=approval_id(row),
    )


def _trial_fault(row: gate.ToolCall) -> schemas.Fault | None:
    if row.status == Status.SUCCEEDED:
        return None
    if found := error(row):
        return schemas.Fault(**found)
    if row.status == Status.WAITING:
        said = f"This tool asks first: approve the call, then read its result at /api/calls/{row.pk}."
    else:
        said = (
            row.reason if row.status == Status.WITHDRAWN else MESSAGES.get(Status(row.status), "It was not executed.")
        )
    return schemas.Fault(kind=row.status, message=said)


def version(save: Save) -> schemas.VersionSummary:
    row = save.version
    return schemas.VersionSummary(
        number=row.number,
        author=row.author.get_username() if row.author else None,
        saved_at=row.saved_at,
        definition_hash=row.definition_hash,
        changed=list(save.fields) if save.fields is not None else None,
    )


def whole_version(save: Save) -> schemas.Version:
    return schemas.Version(**version(save).model_dump(), tool=save.version.draft)


def case(row: TestCase, of: gate.Tool) -> schemas.Case:
    outcome, call = outcomes.of(row, of), row.last_call
    return schemas.Case(
        id=row.pk,
        name=row.name,
        arguments=row.arguments,
        expectation=row.expectation,  # type: ignore[arg-type]  # the database holds it to the same words
        expected=row.expected,
        outcome=outcome.state,
        message=outcome.said,
        call_id=call.pk if call else None,
        approval_id=approval_id(call) if call else None,
    )


def imported(step: Step) -> schemas.ImportedTool:
    return schemas.ImportedTool(
        name=step.entry.draft.name,
        imported_as=step.name,
        action=step.action,
        hitl_mode=_mode(step.mode if step.writes or step.standing is None else step.standing.hitl_mode),
        raised_from=_mode(step.raised_from) if step.raised_from else None,
        risk_level=step.sound.risk_level,
        can=step.powers,
        missing_variables=sorted(step.missing),
        notes=list(step.notes),
    )
