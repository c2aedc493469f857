"""The table of attacks on what makes the gate ask less: each is named, and nothing that the program did itself is."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection
from django.db.models import Q, TextField
from django.db.models.functions import Cast
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from hitlchat.accounts.models import Role, Token, TokenKind
from hitlchat.accounts.roles import give
from hitlchat.gate import oversight, results, ruling, stated, tools
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import (
    Attachment,
    AuditEvent,
    DecidedBy,
    Decision,
    FormerTool,
    ModelText,
    Oversight,
    Strictness,
    Tool,
    ToolCall,
)
from hitlchat.gate.transition import note
from hitlchat.mcp_server import tokens
from hitlchat.people import membership
from hitlchat.record.checking import check, checked_words
from hitlchat.record.exporting import export, first_line, receipt
from hitlchat.record.sealing import advance, mark_file, seal_all
from hitlchat.secrets import sealing
from hitlchat.secrets.values import Value
from hitlchat.upstreams import server_draft
from hitlchat.upstreams.models import ComposedTool, Exposure, UpstreamServer
from tests.conftest import PASSWORD, signed_in
from tests.gate.asking import SCHEMA, approval_of, approved, ask, fresh, run
from tests.gate.granting import HERE
from tests.record.conftest import Sql, found, happen, report, undone
from tests.upstreams.shops import expose, listing, somewhere, take_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.guarantee("record:proves"),
]
SECRET: Final = "secret of the shop"


@pytest.fixture
def house(alice: User, bob: User) -> Tool:
    """One of each thing that makes the gate ask less, made as the program makes it, after the first start."""
    tools.begin_record()
    give(alice, Role.ADMINISTRATOR)
    note(None, "person.role_changed", actor=SYSTEM, data=stated.states("person", alice.pk))
    group = membership.create_group("Finance", signed_in(alice))
    membership.add_to_group(group.pk, "bob", signed_in(alice))
    tool = made("refund", title="Refund", condition="True", deadline_seconds=60, signed_in_only=True)
    ruling.change(tool, oversight.Rules(DecidedBy.GROUP, group), signed_in(alice))
    results.save(tool, {"declined": "No."}, signed_in(alice), confirmed=True)
    results.save(None, {"declined": "Never."}, signed_in(alice), confirmed=True)
    tokens.make(bob, TokenKind.API, signed_in(bob), "one")
    server = somewhere(alice, headers=(Value("X-Key", SECRET),))
    take_in(server, listing(echo="Say it back."))
    expose(alice, server)
    made("other", hitl_mode="DISABLED", risk_level=0)
    made("first")
    tools.remove(Tool.objects.filter(name="first"), signed_in(alice))
    ruling.begin_strictness(HERE, "every", signed_in(alice))
    call = approved(bob, made("pay"))
    assert run(call)
    seal_all()
    assert found() == []
    return tool


def made(name: str, **columns: Any) -> Tool:
    usual: dict[str, Any] = {"source": "recording", "hitl_mode": "REQUIRED", "risk_level": 2, "published": True}
    usual |= {"input_schema": SCHEMA, "definition_hash": "d" * 64, "origin": "Tests"}
    return tools.add(Tool(name=name, **usual | columns), SYSTEM)


def of_tool(**columns: Any) -> Callable[[], Any]:
    return lambda: Tool.objects.filter(name="refund").update(**columns)


def of_person(name: str, **columns: Any) -> Callable[[], Any]:
    return lambda: User.objects.filter(username=name).update(**columns)


def of_server(**columns: Any) -> Callable[[], Any]:
    return lambda: UpstreamServer.objects.update(**columns)


def another_secret() -> None:
    server = UpstreamServer.objects.get()
    server.headers[0]["value"] = sealing.seal("another secret", server_draft.PURPOSE)
    server.save()


def joins(name: str) -> Callable[[], Any]:
    return lambda: User.objects.get(username="alice").groups.add(Group.objects.get(name=name))


def sql(statement: str) -> Callable[[], Any]:
    def attack() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    return attack


def put_tool() -> None:
    usual = {"source": "recording", "definition_hash": "d" * 64, "input_schema": SCHEMA, "risk_level": 0}
    Tool.objects.create(name="forged", hitl_mode="DISABLED", published=True, **usual)


def stated_by_an_older_event() -> None:
    Tool.objects.filter(name="refund").update(
        hitl_mode="DISABLED", stated_by=Tool.objects.values_list("stated_by", flat=True).get(name="other")
    )


def as_it_was_once() -> None:
    """Put a tool back as it was, with the event that stated it then."""
    former = Tool.objects.get(name="other")
    tools.change(former.pk, {"hitl_mode": "REQUIRED"}, signed_in(User.objects.get(username="alice")))
    Tool.objects.filter(pk=former.pk).update(hitl_mode="DISABLED", stated_by=former.stated_by)


ATTACKS: dict[str, Callable[[], Any]] = {
    "never asks": of_tool(hitl_mode="DISABLED"),
    "policies decide": of_tool(hitl_mode="CONDITIONAL"),
    "another condition": of_tool(condition="False"),
    "a client's word": of_tool(signed_in_only=False),
    "another risk": of_tool(risk_level=0),
    "less care for a yes": lambda: Tool.objects.filter(source="upstream").update(risk_inherent=0),
    "another sentence": of_tool(prompt_template="Say hello?"),
    "another title": of_tool(title="Tidy up"),
    "another description": of_tool(description="Harmless."),
    "other facts": of_tool(facts=["It reads."]),
    "unpublished": of_tool(published=False),
    "more time": of_tool(deadline_seconds=86400),
    "another name": of_tool(name="refund_2"),
    "another definition": of_tool(definition_hash="e" * 64),
    "a former state with its event": as_it_was_once,
    "the event of another tool": stated_by_an_older_event,
    "a tool put in": put_tool,
    "a tool removed": lambda: Tool.objects.filter(name="other").delete(),
    "nobody else decides": lambda: Oversight.objects.all().delete(),
    "another group decides": lambda: Oversight.objects.update(group=Group.objects.create(name="Others")),
    "fewer decide": lambda: Oversight.objects.update(quorum=2),
    "others after a time": lambda: Oversight.objects.update(escalate_after_seconds=1),
    "rules put in": lambda: Oversight.objects.create(
        tool=Tool.objects.get(name="other"), decided_by="approvers", digest="d" * 64
    ),
    "another text": lambda: ModelText.objects.exclude(tool=None).update(text="It worked."),
    "another text of all": lambda: ModelText.objects.filter(tool=None).update(text="It worked."),
    "a text removed": lambda: ModelText.objects.all().delete(),
    "an administrator": of_person("bob", is_superuser=True),
    "no administrator": of_person("alice", is_superuser=False),
    "active again": of_person("bob", is_active=False),
    "a new administrator": lambda: User.objects.create_superuser("mallory", password=PASSWORD),
    "a new person": lambda: User.objects.create_user("mallory", password=PASSWORD),
    "in a group": joins("Finance"),
    "out of a group": lambda: User.objects.get(username="bob").groups.set([]),
    "in a role": lambda: User.objects.get(username="bob").groups.add(Group.objects.get(name="role:author")),
    "a token that decides": lambda: Token.objects.update(kind="approver"),
    "a token of another": lambda: Token.objects.update(user=User.objects.get(username="alice")),
    "a token with another text": lambda: Token.objects.update(digest="0" * 64),
    "a token for longer": lambda: Token.objects.update(expires_at=timezone.now() + timedelta(days=1)),
    "a token put in": lambda: Token.make(User.objects.get(username="alice"), TokenKind.APPROVER),
    "another command": of_server(command="/bin/sh"),
    "other arguments": of_server(args=["-c", "true"]),
    "another address": of_server(url="https://elsewhere.example/mcp"),
    "another secret of a header": another_secret,
    "other headers": of_server(headers=[{"name": "X-Key", "value": "two", "secret": False}]),
    "other variables": of_server(env=[{"name": "LD_PRELOAD", "value": "/tmp/a.so", "secret": False}]),
    "a private address": of_server(allow_private=True),
    "another trust": of_server(trust="vendor"),
    "another name of the server": of_server(name="other"),
    "everything is offered": lambda: Exposure.objects.update_or_create(defaults={"ceiling": 1}, pk=1),
    "another pinned text": lambda: ComposedTool.objects.update(pinned={"name": "echo", "description": "Harmless."}),
    "another own description": lambda: ComposedTool.objects.update(description="Harmless."),
    "another schema": lambda: Tool.objects.filter(source="upstream").update(input_schema={"type": "object"}),
    "another past of a tool": sql("UPDATE upstreams_toolevent SET tool_name = 'other'"),
    "a former tool that never asked": lambda: FormerTool.objects.update(hitl_mode="DISABLED"),
    "a former tool of anyone": lambda: FormerTool.objects.update(rules={"decided_by": "requester"}),
    "no former tool": lambda: FormerTool.objects.all().delete(),
    "a former tool put in": lambda: FormerTool.objects.create(name="new", hitl_mode="DISABLED", risk_level=0),
    "a conversation that asks less": lambda: Strictness.objects.update(asks="tools"),
    "a conversation without a word": lambda: Strictness.objects.all().delete(),
    "no past of a tool": sql("DELETE FROM upstreams_toolevent"),
}


def test_nothing_that_makes_the_gate_ask_less_is_changed_unnamed(
    subtests: pytest.Subtests, house: Tool, tamper: Sql
) -> None:
    for name, attack in ATTACKS.items():
        with subtests.test(name), undone():
            attack()
            assert {kind for kind, *_ in found()} & {"not as stated", "not on record", "not the definition"}
    assert found() == []


@pytest.mark.servers("the SQL differs between the databases")
def test_each_difference_is_named_with_what_it_is_and_what_the_last_event_says(house: Tool, tamper: Sql) -> None:
    Tool.objects.filter(pk=house.pk).update(hitl_mode="DISABLED", title="Tidy up")
    mode, title = report().findings
    assert mode.words.startswith("The hitl mode of the tool 'refund' is \"DISABLED\", but event ")
    assert title.words.endswith(', the last about it, says "Refund".')


@pytest.mark.servers("the SQL differs between the databases")
def test_what_the_program_changes_itself_is_whole(house: Tool, alice: User, bob: User) -> None:
    tools.change(house.pk, {"hitl_mode": "DISABLED", "title": "Other", "name": "paid"}, signed_in(alice))
    tools.offer(Tool.objects.filter(name="paid"), signed_in(alice), published=False)
    ruling.change(house, oversight.Rules(), signed_in(alice), confirmed=True)
    results.save(None, {"declined": ""}, signed_in(alice), confirmed=True)
    membership.delete_group(Group.objects.get(name="Finance").pk, signed_in(alice), "Finance")
    membership.change_role(bob.pk, Role.APPROVER, signed_in(alice))
    membership.deactivate(bob.pk, signed_in(alice))
    membership.reactivate(bob.pk, signed_in(alice))
    call_command("createsuperuser", "--noinput", username="carol", email="carol@example.org")
    tools.remove(Tool.objects.filter(name__in=["paid", "other"]), signed_in(alice))
    ruling.change_strictness(HERE, "tools", signed_in(alice))
    ruling.forget_strictness(HERE)
    seal_all()
    assert report().findings == []


def test_no_event_has_a_header_of_a_server_in_clear_or_sealed(house: Tool) -> None:
    (kept,) = UpstreamServer.objects.get().headers
    texts = AuditEvent.objects.annotate(text=Cast("data", TextField()))
    assert texts.filter(text__contains="headers_and_variables").exists()
    assert not texts.filter(Q(text__contains=kept["value"]) | Q(text__contains=SECRET)).exists()
    UpstreamServer.objects.update(headers=[])
    (differs,) = [each.words for each in report().findings if each.kind == "not as stated"]
    assert differs.startswith("The headers and variables of the server 'shop' is ")
    assert kept["value"] not in differs


def test_what_an_event_of_before_lacks_is_not_compared(house: Tool) -> None:
    server = UpstreamServer.objects.get()
    states = stated.states("server", server.pk)
    del states[stated.STATES]["server"][str(server.pk)]["headers_and_variables"]
    note(None, "server.changed", actor=SYSTEM, data=states)
    assert found() == []
    UpstreamServer.objects.update(headers=[])
    assert "not as stated" not in dict(each[:2] for each in found())
    UpstreamServer.objects.update(trust="vendor")
    assert "not as stated" in dict(each[:2] for each in found())


@pytest.mark.servers("the SQL differs between the databases")
def test_what_is_there_before_the_first_start_is_on_record_by_it_and_once(bob: User, tamper: Sql) -> None:
    put_tool()
    assert found() == []
    tools.begin_record()
    events = AuditEvent.objects.count()
    tools.begin_record()
    assert (AuditEvent.objects.count(), found()) == (events, [])
    User.objects.filter(pk=bob.pk).update(is_superuser=True)
    assert {kind for kind, *_ in found()} == {"not as stated"}


# -- Live --------------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:fail-closed")
def test_a_tool_that_the_record_does_not_let_run_unasked_is_asked_about(
    subtests: pytest.Subtests, house: Tool, bob: User, tamper: Sql
) -> None:
    other, pay = Tool.objects.get(name="other"), Tool.objects.get(name="pay")
    assert ask(bob, other).status == "allowed"
    for stated_by in (pay.stated_by, other.stated_by, None, 10**9):
        with subtests.test(stated_by=stated_by):
            Tool.objects.filter(pk=pay.pk).update(hitl_mode="DISABLED", stated_by=stated_by)
            assert_asked_for_the_record(bob, pay)


@pytest.mark.guarantee("gate:fail-closed")
def test_a_tool_as_a_former_event_about_it_states_it_is_asked_about(house: Tool, alice: User, bob: User) -> None:
    former = Tool.objects.get(name="other")
    tools.change(former.pk, {"hitl_mode": "REQUIRED"}, signed_in(alice))
    Tool.objects.filter(pk=former.pk).update(hitl_mode="DISABLED", stated_by=former.stated_by)
    assert_asked_for_the_record(bob, former)
    tools.remove(Tool.objects.filter(pk=former.pk), signed_in(alice))
    former.save(force_insert=True)
    assert_asked_for_the_record(bob, former)


def assert_asked_for_the_record(bob: User, tool: Tool) -> None:
    call = ask(bob, Tool.objects.get(name=tool.name))
    assert (call.status, "the record does not show" in call.reason) == ("waiting", True)


@pytest.mark.guarantee("gate:fail-closed")
def test_that_the_last_event_states_it_is_seen_by_indexes_alone(house: Tool) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert stated.is_as_stated(Tool.objects.get(name="other"))
    (query,) = [each["sql"] for each in queries if "gate_auditevent" in each["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' * (connection.vendor == 'sqlite')}{query}")
        plan = str(cursor.fetchall())
    assert connection.vendor != "sqlite" or ("audit_by_guard" in plan and "SCAN" not in plan)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_call_that_was_allowed_or_approved_past_the_record_does_not_run(bob: User) -> None:
    allowed = ask(bob, made("maybe", hitl_mode="CONDITIONAL"))
    approved = ask(bob, made("pay"))
    assert (allowed.status, approved.status) == ("waiting", "waiting")
    ToolCall.objects.filter(pk=allowed.pk).update(status="allowed")
    answered_by_hand(approved, bob)
    for call in (allowed, approved):
        assert not run(fresh(call))
        assert (fresh(call).status, "record does not say" in fresh(call).reason) == ("withdrawn", True)
    assert [kind for kind, *_ in found()] == ["not what was decided"]


def answered_by_hand(call: ToolCall, bob: User) -> str:
    """A yes of bob's that no event tells of; its digest."""
    approval = approval_of(call)
    Decision.objects.create(approval=approval, person=bob, verdict="approve", means="session", digest=approval.digest)
    ToolCall.objects.filter(pk=call.pk).update(status="approved")
    return approval.digest


# -- Order, gaps, digests and attachments ------------------------------------------------------------------------------


def test_what_happens_to_an_open_question_is_named_after_it_was_closed(subtests: pytest.Subtests, bob: User) -> None:
    call = approved(bob, made("pay"))
    assert run(call)
    for name in ("call.yes_taken_back", "call.extended", "call.counted"):
        with subtests.test(name), undone():
            if name == "call.yes_taken_back":
                Decision.objects.filter(approval__call=call).delete()
            note(call.pk, name, actor=signed_in(bob))
            assert "not in order" in [kind for kind, *_ in found()]


@pytest.mark.servers("the SQL differs between the databases")
def test_a_call_that_is_removed_whole_before_its_seal_leaves_a_gap_on_sqlite(bob: User, tamper: Sql) -> None:
    call = ask(bob, made("pay"))
    last = note(None, "test.event", actor=SYSTEM)
    ids = AuditEvent.objects.filter(call_id=call.pk).values_list("pk", flat=True)
    first = min(ids)
    tamper("DELETE FROM gate_auditevent WHERE id >= %s AND id < %s", first, last.pk)
    approval_of(call).delete()
    ToolCall.objects.filter(pk=call.pk).delete()
    expected = [("gap", None, first)] if connection.vendor == "sqlite" else []
    assert found() == expected
    seal_all()
    assert [kind for kind, *_ in found()] == ["gap"] * len(expected)


def test_the_very_first_events_that_are_removed_leave_a_gap_on_sqlite(tamper: Sql) -> None:
    first, second, *_ = happen(3)
    tamper("DELETE FROM gate_auditevent WHERE id <= %s", second)
    is_named = connection.vendor == "sqlite"
    assert found() == [("gap", None, first)] * is_named
    seal_all()
    assert found() == [("gap", 1, first)] * is_named


def test_a_yes_that_is_forged_without_digests_in_what_is_not_sealed_is_named(bob: User) -> None:
    assert run(approved(bob, made("pay")))
    seal_all()
    call = ask(bob, Tool.objects.get(name="pay"))
    digest = answered_by_hand(call, bob)
    note(call.pk, "call.approved", actor=signed_in(bob), data={"digest": digest})
    assert [kind for kind, *_ in found()] == ["no digest"]


def test_an_attachment_is_there_and_held_to_its_digest(bob: User) -> None:
    call = approved(bob, made("picture", source="picturing"))
    assert run(call)
    assert found() == []
    forged = Attachment.objects.create(call=call, digest="d" * 64, data=b"other")
    assert [kind for kind, *_ in found()] == ["not what came back"]
    forged.delete()
    Attachment.objects.filter(call=call).delete()
    (finding,) = report().findings
    assert finding.kind == "not what came back"
    assert "is missing" in finding.words


# -- Exports -----------------------------------------------------------------------------------------------------------


def test_an_export_and_a_receipt_say_on_their_first_line_what_verifying_would(
    house: Tool, bob: User, tmp_path: Path, tamper: Sql
) -> None:
    call = ToolCall.objects.get(status="succeeded")
    export(tmp_path / "whole", signed_in(bob))
    assert first_line(tmp_path / "whole")["verified"] is True
    Tool.objects.filter(pk=house.pk).update(hitl_mode="DISABLED")
    export(tmp_path / "export", signed_in(bob))
    receipt(tmp_path / "receipt", call.pk, signed_in(bob))
    for name in ("export", "receipt"):
        header = first_line(tmp_path / name)
        assert (header["verified"], [each["kind"] for each in header["findings"]]) == (False, ["not as stated"])
        told = check((tmp_path / name).read_bytes().splitlines(keepends=True))
        assert told.is_genuine
        assert "had been changed" in checked_words(told, "")[0]
    with pytest.raises(Exception, match="exists"):
        call_command("audit", "export", str(tmp_path / "export"))


def test_what_was_noted_beside_the_record_is_for_its_owner_alone() -> None:
    happen(1)
    seal_all()
    advance()
    assert mark_file().stat().st_mode & 0o777 == 0o600
    mark_file().chmod(0o644)
    advance()
    assert mark_file().stat().st_mode & 0o777 == 0o600


def test_another_secret_key_is_no_difference_of_servers_and_the_old_one_still_finds_one(
    house: Tool, settings: Settings
) -> None:
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another" * 10
    assert found() == []
    UpstreamServer.objects.update(url="https://elsewhere.example/mcp")
    assert "not as stated" in dict(each[:2] for each in found())
    settings.SECRET_KEY_FALLBACKS = []
    assert "not as stated" not in dict(each[:2] for each in found())
