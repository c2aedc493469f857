"""Only one file moves a call, and one a run. The checker is tested first, on snippets that must not pass."""

import ast

from tests.architecture.source import program_files, read, tree
from tests.architecture.status_writes import FIELD, Owned, violations
from tests.tables import each_row

CALL = Owned("ToolCall", app="hitlchat/gate", owner="hitlchat/gate/transition.py")
RUN = Owned("Run", app="hitlchat/agent", owner="hitlchat/agent/runs.py")
OWNED = (CALL, RUN)

CAUGHT = {
    "assignment": "call.status = Status.APPROVED",
    "of several": "a, call.status = 1, 2",
    "augmented": "call.status += 'x'",
    "annotated": "call.status: str = 'x'",
    "deep": "approval.call.status = 'approved'",
    "deletion": "del call.status",
    "loop": "for call.status in moves: pass",
    "with": "with open(p) as call.status: pass",
    "setattr": "setattr(call, 'status', 'approved')",
    "object setattr": "object.__setattr__(call, 'status', 'approved')",
    "update": "ToolCall.objects.filter(pk=1).update(status='approved')",
    "update of a queryset": "queryset.update(status='approved')",
    "unpacked update": "queryset.update(**{'status': 'approved'})",
    "async update": "async def f(): await ToolCall.objects.aupdate(status='approved')",
    "related": "conversation.tool_calls.filter(x=1).update(status='approved')",
    "create": "ToolCall.objects.create(status='approved')",
    "async create": "async def f(): await ToolCall.objects.acreate(status='approved')",
    "defaults": "ToolCall.objects.update_or_create(pk=1, defaults={'status': 'approved'})",
    "create defaults": "calls.get_or_create(pk=1, defaults=dict(status='approved'))",
    "bulk update": "ToolCall.objects.bulk_update(calls, ['status'])",
    "bulk update by name": "ToolCall.objects.bulk_update(calls, fields=('status', 'result'))",
    "bulk create": "ToolCall.objects.bulk_create(calls, update_fields=['status'])",
    "save": "call.save(update_fields=['status'])",
    "async save": "async def f(): await call.asave(update_fields={'status'})",
    "constructor": "ToolCall(status='approved').save()",
    "constructor by module": "models.ToolCall(status='approved').save()",
    "own method": "class ToolCall:\n def approve(self):\n  self.status = 'approved'",
    "raw": "cursor.execute('UPDATE gate_toolcall SET status = %s')",
    "raw over lines": "cursor.execute('''update\n gate_toolcall\n set result = 1, status = 2''')",
}

LET_PASS = {
    "reading": "print(call.status)",
    "filter": "ToolCall.objects.filter(status='waiting')",
    "another field": "ToolCall.objects.filter(status='x').update(result={})",
    "another class": "UpstreamServer.objects.update(status='up')",
    "another class's method": "class Connection:\n def close(self):\n  self.status = 'closed'",
    "an answer": "JsonResponse({}, status=409)",
    "an answer's method": "render(request, 'page.html', status=409)",
    "an answer by module": "http.JsonResponse({}, status=409)",
    "an event": "AuditEvent.objects.create(status='approved')",
}


@each_row("code", CAUGHT.values(), ids=CAUGHT.keys())
def test_the_checker_catches_every_form_of_write_in_the_gate(code: str) -> None:
    assert violations("hitlchat/gate/decide.py", ast.parse(code), CALL)


@each_row("code", CAUGHT.values(), ids=CAUGHT.keys())
def test_the_checker_catches_every_form_of_write_wherever_the_model_is_named(code: str) -> None:
    module = ast.parse(f"from hitlchat.gate.models import ToolCall\n{code}")
    assert violations("hitlchat/chat/consumers.py", module, CALL, OWNED)


@each_row("code", LET_PASS.values(), ids=LET_PASS.keys())
def test_the_checker_lets_pass_what_is_no_write_of_the_status(code: str) -> None:
    assert violations("hitlchat/gate/decide.py", ast.parse(code), CALL) == []


def test_the_owner_may_write_and_only_its_own_model() -> None:
    assert violations(CALL.owner, ast.parse("call.status = 1"), CALL, OWNED) == []
    assert violations(RUN.owner, ast.parse("run.status = 1; ToolCall"), CALL, OWNED) == []
    assert violations(RUN.owner, ast.parse("ToolCall.objects.update(status=1)"), CALL, OWNED)


def test_a_file_that_does_not_know_the_model_is_left_alone() -> None:
    assert violations("hitlchat/accounts/roles.py", ast.parse("person.status = 1"), CALL) == []


@each_row("owned", OWNED, ids=lambda owned: owned.model)
def test_only_one_file_writes_the_status(owned: Owned) -> None:
    paths = [path for path in program_files() if FIELD in read(path)]
    paths = [path for path in paths if path.startswith(f"{owned.app}/") or owned.model in read(path)]
    assert owned.owner in paths
    found = [line for path in paths for line in violations(path, tree(path), owned, OWNED)]
    assert found == []
