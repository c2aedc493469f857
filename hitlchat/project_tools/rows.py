"""The tools' rows in the gate, kept in step with the code: what the code says is what there is."""

import logging
from collections.abc import Mapping
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, IntegrityError, transaction
from django.db.models import Model, Q

from hitlchat.gate import tools, withdraw
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool
from hitlchat.project_tools import catalogue
from hitlchat.project_tools.catalogue import SOURCE, ProjectTool

logger = logging.getLogger(__name__)


def keep_in_step() -> None:
    """Add, change and remove rows until they are as the code has them; nothing is written where they are already.

    Calls stay on record; what waits for an answer about a function that changed or is gone is withdrawn. A name that
    another tool has is not touched: the function is left out, and the log says so.
    """
    declared = catalogue.tools()
    rows = {row.name: row for row in Tool.objects.filter(Q(source=SOURCE) | Q(name__in=declared))}
    for name, made in declared.items():
        _keep(made, rows.get(name))
    for name, row in rows.items():
        if row.source == SOURCE and name not in declared:
            _remove(row)


def after_migrate(*, using: str, **kwargs: Any) -> None:
    """For `post_migrate`: the table may be gone by now, or be that of another version."""
    try:
        migrated = kwargs.get("apps", apps).get_model("gate", "Tool")
    except LookupError:
        return
    if using == DEFAULT_DB_ALIAS and _columns(migrated) == _columns(Tool):
        keep_in_step()


def _columns(model: type[Model]) -> set[str | None]:
    return {field.column for field in model._meta.local_fields}  # noqa: SLF001 - public, despite its name


def _keep(made: ProjectTool, row: Tool | None) -> None:
    columns = made.columns
    if row is None:
        # Not `create`: another process may be starting too.
        row, is_new = _get_or_add(made.name, columns)
        if is_new:
            logger.info("Function %s is now the tool %s", made.path, made.name)
            return
    if row.source != SOURCE:
        logger.error("Function %s is not offered: another tool has the name %s (%s)", made.path, made.name, row.origin)
    elif _differs(row, columns):
        _change(row, columns)


def _get_or_add(name: str, columns: dict[str, Any]) -> tuple[Tool, bool]:
    try:
        with transaction.atomic():
            # What the operator's code says holds; only who decides is inherited from an earlier tool of the name.
            return tools.add(Tool(**columns), SYSTEM, inherits=False), True
    except IntegrityError:
        return Tool.objects.get(name=name), False


def _change(row: Tool, columns: dict[str, Any]) -> None:
    with transaction.atomic():
        standing = Tool.objects.select_for_update().filter(pk=row.pk, source=SOURCE).first()
        if standing is None or not _differs(standing, columns):
            return
        tools.change(row.pk, columns, SYSTEM)
        if standing.definition_hash != columns["definition_hash"]:
            withdraw.withdraw_tool(row.pk, actor=SYSTEM, why="the function was changed")
        if (standing.hitl_mode, standing.condition) != (columns["hitl_mode"], columns["condition"]):
            withdraw.withdraw_allowed(row.pk, actor=SYSTEM, why="the rule that allowed it was changed")
    logger.info("The tool %s follows its function, which was changed", row.name)


def _remove(row: Tool) -> None:
    with transaction.atomic():
        withdraw.withdraw_tool(row.pk, actor=SYSTEM, why="the function was removed from this server's project")
        tools.remove(Tool.objects.filter(pk=row.pk, source=SOURCE), SYSTEM)
    logger.info("The tool %s is gone with its function", row.name)


def _differs(row: Tool, columns: Mapping[str, Any]) -> bool:
    return any(getattr(row, name) != value for name, value in columns.items())
