"""The table of attacks: whoever holds the database, and not the key, changes what is sealed or what people read of it.

Every column and every path of the data of every kind of event, and each kind of path in every way; and every column of
what is kept beside the events. Each is named.
"""

import copy
import json
import secrets
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, models
from django.utils import timezone

from hitlchat.accounts.models import Role
from hitlchat.accounts.roles import give
from hitlchat.base import canonical
from hitlchat.base.schemas import step
from hitlchat.gate import absences, attention, decide, planted, second, transition
from hitlchat.gate.decide import take_back
from hitlchat.gate.models import Absence, Approval, AttentionCheck, AuditEvent, Decision, Seal, Tool, ToolCall, new_id
from hitlchat.gate.second import Caution
from hitlchat.record import keys, proofs, rows
from hitlchat.record.checking import check
from hitlchat.record.exporting import export, receipt
from hitlchat.record.proofs import SEAL, sign
from hitlchat.record.sealing import seal, seal_all
from hitlchat.record.verifying import compare
from tests.clock import travel
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, fresh, recording, run, say_yes
from tests.gate.conftest import previews
from tests.gate.deciding_people import approver, rule
from tests.planted import check_for
from tests.record.conftest import Sql, found, happen, report, sealed, undone
from tests.record.test_completeness import STORIES
from tools_studio import authoring
from tools_studio.models import Script, ScriptVersion
from tools_studio.spec import Draft

__all__ = ["previews"]

SERVERS = pytest.mark.servers("the SQL differs between the databases")
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.guarantee("record:proves"),
]

Data = Any
UPDATE = "UPDATE gate_auditevent SET"


# -- Events ----------------------------------------------------------------------------------------------------------


def several(bob: User) -> ToolCall:
    """Shown, counted, taken back, put off."""
    tool = recording()
    people = [approver(name) for name in ("dora", "emil")]
    give(bob, Role.ADMINISTRATOR)
    rule(tool, User.objects.get(pk=bob.pk), quorum=2)
    call = ask(bob, tool)
    attention.shown(approval_of(call), signed_in(people[0]))
    decide.approve(approval_of(call).pk, signed_in(people[0]))
    take_back(call.pk, signed_in(people[0]))
    for person in people:
        decide.approve(approval_of(call).pk, signed_in(person))
    return call


EVENTS = [*STORIES, several]


def at(data: Data, path: tuple[Any, ...]) -> Data:
    for key in path:
        data = data[key]
    return data


def paths(data: Data, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield from paths(value, (*path, key))


def shape(data: Data, path: tuple[Any, ...]) -> tuple[Any, ...]:
    """What of a path decides how it is sealed and read: how deep it is, in what, and what is there."""
    inner = at(data, path[:-1])
    return len(path), type(inner), len(inner) > 1, type(at(data, path)), bool(at(data, path))


def tried(data: Data) -> Iterator[tuple[tuple[Any, ...], set[str]]]:
    """Each path with the tricks to try there: every one at the first of each shape, at the others what differs."""
    known = set()
    for path in paths(data):
        yield path, TELLING if shape(data, path) in known else TRICKS
        known.add(shape(data, path))


TRICKS = {
    *("changed", "its hash", "hidden", "hidden and read", "hidden otherwise"),
    *("wrapped", "removed", "added", "reordered", "swapped"),
}
# A value that is not sealed would pass with the first, and one that may be hidden with the other.
TELLING = {"changed", "hidden"}


def tricks(data: Data, path: tuple[Any, ...], digest: str) -> Iterator[tuple[str, str]]:
    """What may be put in the place of `data`, as text; `digest`: what the seal has for the value at `path`."""
    value, key = at(data, path), path[-1]

    def put(other: Data) -> str:
        made = copy.deepcopy(data)
        at(made, path[:-1])[key] = other
        return json.dumps(made)

    yield "changed", put(f"{value}x" if isinstance(value, str) else "x")
    yield "its hash", put(digest)
    yield "hidden", put({"$hidden": digest})
    yield "hidden and read", put({"$hidden": digest, "$reads": value})
    yield "hidden otherwise", put({"hidden": {"": digest}})
    yield "wrapped", put([value])
    made = copy.deepcopy(data)
    del at(made, path[:-1])[key]
    yield "removed", json.dumps(made)
    made = copy.deepcopy(data)
    inner = at(made, path[:-1])
    if isinstance(inner, dict):
        inner[f"{key}$"] = value
        yield "added", json.dumps(made)
        yield "reordered", json.dumps(_turned(data, path[:-1])) if len(inner) > 2 else put("y")
        others = [other for other in at(data, path[:-1]) if other != key and at(data, path[:-1])[other] != value]
        if others:
            made = copy.deepcopy(data)
            inner = at(made, path[:-1])
            inner[key], inner[others[0]] = inner[others[0]], inner[key]
            yield "swapped", json.dumps(made)
    else:
        inner.append(value)
        yield "added", json.dumps(made)


def _turned(data: Data, path: tuple[Any, ...]) -> Data:
    made = copy.deepcopy(data)
    inner = at(made, path)
    for name in list(inner)[:-1]:
        inner[name] = inner.pop(name)
    return dict(reversed(list(made.items()))) if not path else made


def digest_at(event: AuditEvent, batch: Seal, path: tuple[Any, ...]) -> str:
    salt_of = proofs.salts(proofs.salt_of_row(batch.salt, event.pk))
    where = ""
    for key in path:
        where = step(where, key) if isinstance(key, str) else f"{where}/{key}"
    return proofs.node(at(event.data, path), salt_of, path=where).hex()


def named(event: AuditEvent) -> bool:
    return event.pk in {event_id for _, _, event_id in found()}


def named_in(batch: Seal, event: AuditEvent) -> bool:
    """The same, of the event's batch alone, as verifying compares each batch."""
    return event.pk in {each.event for each in compare(batch, rows.stored(batch), {}, batch.number + 1)}


def test_no_path_of_the_data_and_no_column_of_any_event_can_be_changed_in_any_way(
    subtests: pytest.Subtests, alice: User, bob: User, tamper: Sql
) -> None:
    calls = {}
    for story in EVENTS:
        calls[story] = story(bob)
        assert seal() is not None
    other = ask(bob, recording("other"))
    seal_all()
    assert found() == []
    for story, call in calls.items():
        for event in kinds(story, call):
            with subtests.test(story.__name__, event=event.name):
                batch = Seal.objects.get(first__lte=event.pk, last__gte=event.pk)
                assert list(other_data_unnamed(event, batch, tamper)) == []
                columns = {"actor_id": alice.pk, "call_id": database_id(other.pk)}
                assert list(other_columns_unnamed(event, batch, columns, tamper)) == []
    assert found() == []


def other_data_unnamed(event: AuditEvent, batch: Seal, tamper: Sql) -> Iterator[Any]:
    (text,) = one("SELECT data FROM gate_auditevent WHERE id = %s", event.pk)
    for path, names in tried(event.data):
        for name, other in tricks(event.data, path, digest_at(event, batch, path)):
            if name in names:
                tamper(f"{UPDATE} data = %s WHERE id = %s", other, event.pk)
                yield from [] if named_in(batch, event) else [(event.name, path, name)]
    for name, other in (("spaced", f" {text}"), ("twice", '{"reason":"x",' + text[1:]), ("none", "null")):
        tamper(f"{UPDATE} data = %s WHERE id = %s", other, event.pk)
        yield from [] if named_in(batch, event) else [(event.name, name)]
    yield from [] if named(event) else [event.name]
    tamper(f"{UPDATE} data = %s WHERE id = %s", text, event.pk)


def other_columns_unnamed(event: AuditEvent, batch: Seal, others: dict[str, Any], tamper: Sql) -> Iterator[Any]:
    said = {"name": "call.forged", "means": "console", **others, "at": "2026-01-01 00:00:00"}
    for column, value in said.items():
        (before,) = one(f"SELECT {column} FROM gate_auditevent WHERE id = %s", event.pk)
        for forged in (value, None) if column in others and before is not None else (value,):
            tamper(f"{UPDATE} {column} = %s WHERE id = %s", forged, event.pk)
            yield from [] if named_in(batch, event) else [(event.name, column, forged)]
        tamper(f"{UPDATE} {column} = %s WHERE id = %s", before, event.pk)


def kinds(story: Callable[[User], ToolCall], call: ToolCall) -> list[AuditEvent]:
    """What this story is there for: the last event of a call, or in the long one those that end no other story."""
    events = list(AuditEvent.objects.filter(call=call))
    if story is not several:
        return events[-1:]
    told = {f"call.{status.value}" for status, _ in STORIES.values()}
    return [event for name, event in {event.name: event for event in events}.items() if name not in told]


def one(sql: str, *values: Any) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        row: tuple[Any, ...] = cursor.fetchone()
    return row


def database_id(key: Any) -> Any:
    return key.hex if connection.vendor == "sqlite" else key


# -- What people read beside them ------------------------------------------------------------------------------------


def other_than(field: Any, value: Any, alice: User) -> Any:
    words = {"status": "failed", "caller_kind": "api", "decided_by": "approvers", "verdict": "decline"}
    if field.name in words:
        return words[field.name]
    match field:
        case models.ForeignKey():
            return alice.pk
        case canonical.JSONTextField():
            return {"forged": 1}
        case models.UUIDField():
            return new_id()
        case models.BooleanField():
            return not value
        case models.DateTimeField():
            return (value or timezone.now()) + timedelta(seconds=1)
        case models.IntegerField():
            return (value or 0) + 1
    return f"x{value[1:]}" if value else "x"


def columns() -> list[tuple[type[models.Model], str]]:
    calls = [name for name in transition.CALL_COLUMNS if name not in {"id", "grant_id"}]
    answers = [name for name in transition.DECISION_COLUMNS if name not in {"id", "approval_id"}]
    found: list[tuple[type[models.Model], str]] = [(ToolCall, name) for name in (*calls, "deadline")]
    found += [(Decision, name) for name in answers]
    return found + [(Approval, name) for name in ("prompt", "disclosure", "digest")] + [(User, "username")]


def test_no_column_that_people_read_can_be_changed(subtests: pytest.Subtests, alice: User, bob: User) -> None:
    call = ask(bob, recording())
    say_yes(bob, call, edited={"text": "other", "amount": 2})
    assert run(fresh(call))
    seal_all()
    assert found() == []
    for kind, column in columns():
        row = kind._default_manager.get(pk=bob.pk) if kind is User else kind._default_manager.get()
        field: Any = kind._meta.get_field(
            column.removesuffix("_id") if column in {"caller_id", "person_id"} else column
        )
        there, before = kind._default_manager.filter(pk=row.pk), getattr(row, column)
        with subtests.test(kind=kind.__name__, column=column):
            there.update(**{column: other_than(field, before, alice)})
            assert found() != []
        there.update(**{column: before})
    assert found() == []


@pytest.mark.guarantee("record:proves")
def test_the_tick_that_a_caution_takes_cannot_be_taken_away(bob: User) -> None:
    call = ask(bob, recording())
    asked = second.begin(call.pk, "gpt", takes_tick=True)
    assert asked is not None
    assert second.keep(asked, Caution("The text is another one."))
    seal_all()
    assert found() == []
    for other in (False, None):
        ToolCall.objects.update(caution_takes_tick=other)
        assert [kind for kind, *_ in found()] == ["not what was shown"], other


def test_in_whose_place_an_answer_was_given_cannot_be_changed(bob: User) -> None:
    carol, dora = User.objects.create_user("carol"), User.objects.create_user("dora")
    absence = absences.begin(bob.pk, "carol", None, timezone.now() + timedelta(hours=1), signed_in(bob))
    call = ask(bob, recording())
    say_yes(carol, call)
    own = approved(dora, recording("other"))
    seal_all()
    assert found() == []
    theirs, plain = Decision.objects.filter(approval__call=call), Decision.objects.filter(approval__call=own)
    for answers, columns in (
        (theirs, {"absent": None}), (theirs, {"absent": dora}), (theirs, {"absent_name": "dora"}),
        (plain, {"absent": bob}),
    ):  # fmt: skip
        before = answers.values(*columns).get()
        answers.update(**columns)
        assert found() != [], columns
        answers.update(**before)
        assert found() == []
    there = Absence.objects.filter(pk=absence.pk)
    for forged in ({"delegate": dora}, {"person": dora}, {"until": absence.until + timedelta(days=9)}):
        there.update(**forged)
        assert [kind for kind, *_ in found()] == ["not as stated"], forged
        there.update(delegate=carol, person=bob, until=absence.until)
    there.delete()
    assert [kind for kind, *_ in found()] == ["not as stated"]


def test_an_attention_check_and_its_answer_cannot_be_changed(alice: User, bob: User) -> None:
    check = check_for(bob, alice)
    planted.answer(check.pk, signed_in(bob), declined=False)
    seal_all()
    assert found() == []
    AttentionCheck.objects.update(seen=True)
    assert [kind for kind, *_ in found()] == ["not as stated"]
    AttentionCheck.objects.all().delete()
    assert [kind for kind, *_ in found()] == ["not as stated"]


@SERVERS
def test_what_is_gone_or_put_in_beside_the_events_is_named(bob: User, tamper: Sql) -> None:
    approved(bob, recording())
    seal_all()
    put_in = ToolCall.objects.create(tool_name="forged", status="succeeded", caller=bob, caller_kind="chat")
    assert [kind for kind, *_ in found()] == ["not on record"]
    ToolCall.objects.filter(pk=put_in.pk).delete()
    decision = Decision.objects.get()
    Decision.objects.all().delete()
    assert [kind for kind, *_ in found()] == ["not what was decided"]
    decision.save(force_insert=True)
    other = Decision.objects.get()
    other.pk, other.person = new_id(), approver("dora")
    other.save(force_insert=True)
    assert [kind for kind, *_ in found()] == ["not what was decided"]


def test_the_code_under_a_definition_hash_is_held_to_it(alice: User) -> None:
    tool = authoring.create(
        Draft("echo", 'def run(text: str) -> str:\n    """Say it."""\n    return text\n'), signed_in(alice)
    )
    assert found() == []
    code = Script.objects.get().code
    Script.objects.update(code=code.replace("return text", "return 'x'"))
    assert [kind for kind, *_ in found()] == ["not the definition"]
    Script.objects.update(code=code)
    Tool.objects.filter(pk=tool.pk).update(description="Harmless.")
    assert [kind for kind, *_ in found()] == ["not the definition", "not as stated"]
    Tool.objects.filter(pk=tool.pk).update(description=tool.description)
    version = ScriptVersion.objects.get()
    ScriptVersion.objects.update(draft={**version.draft, "code": code.replace("return text", "return 'x'")})
    assert [kind for kind, *_ in found()] == ["not the definition"]


def test_what_was_changed_beside_the_events_is_in_no_receipt(alice: User, bob: User, tmp_path: Path) -> None:
    call = approved(bob, recording())
    assert run(call)
    seal_all()
    ToolCall.objects.update(tool_name="forged_tool", arguments={"forged": 1}, status="failed", caller=alice)
    Approval.objects.update(disclosure={"forged": 1})
    User.objects.filter(pk=bob.pk).update(username="forged_name")
    receipt(tmp_path / "one", call.pk, signed_in(alice))
    lines = (tmp_path / "one").read_bytes().splitlines(keepends=True)
    assert check(lines).wrong == ""
    assert b"forged" not in b"".join(lines)
    told = json.loads(lines[-2])
    assert (told["tool"]["name"], told["status"], told["said"][0]["by"]) == ("refund", "succeeded", "bob")
    assert (told["ran"], told["shown"][0]["matches"]) == (None, False)


def test_an_export_of_a_forged_record_is_not_genuine(bob: User, tmp_path: Path, tamper: Sql) -> None:
    approved(bob, recording())
    seal_all()
    event = AuditEvent.objects.get(name="call.approved")
    batch = Seal.objects.get(first__lte=event.pk, last__gte=event.pk)
    for number, path in enumerate(path for path, names in tried(event.data) if names is TRICKS):
        for name, other in list(tricks(event.data, path, digest_at(event, batch, path)))[: 1 if number else None]:
            tamper(f"{UPDATE} data = %s WHERE id = %s", other, event.pk)
            export(tmp_path / f"{number} {name}", signed_in(bob))
            found = check((tmp_path / f"{number} {name}").read_bytes().splitlines(keepends=True))
            assert "changed after it was sealed" in found.wrong, (path, name)


# -- What looks like the record's own marks, and what cannot be read --------------------------------------------------


def test_arguments_that_look_like_a_hidden_value_are_data(bob: User, tmp_path: Path) -> None:
    tool = recording(input_schema={"type": "object"})
    for number, value in enumerate(({"$hidden": "x"}, {"$hidden": "a" * 64, "$reads": "y"}, [{"$hidden": None}])):
        call = ask(bob, tool, {"v": value, "n": number})
        say_yes(bob, call, edited={"v": {"w": value}, "password": "hunter22!"})
        assert run(fresh(call))
    assert seal() is not None
    assert found() == []
    export(tmp_path / "file", signed_in(bob))
    lines = (tmp_path / "file").read_bytes().splitlines(keepends=True)
    assert (check(lines).wrong, check(lines).receipts, check(lines).hidden) == ("", 3, 6)
    assert b"hunter22" not in b"".join(lines)


UNREADABLE = ["data = 'no JSON'", "data = '{\"a\":1e999}'", "data = '{\"a\":NaN}'"]
ON_SQLITE = [
    "at = 'long ago'",
    "call_id = 'nobody'",
    "name = x'ff00'",
    "data = CAST(x'22ff22' AS TEXT)",
    "actor_id = 'me'",
]


@SERVERS
def test_rows_that_cannot_be_read_are_sealed_as_such_and_told(tmp_path: Path, tamper: Sql) -> None:
    changes = [*UNREADABLE, *(ON_SQLITE if connection.vendor == "sqlite" else [])]
    ids = happen(len(changes) + 2)[1:-1]
    with connection.constraint_checks_disabled():
        for event_id, change in zip(ids, changes, strict=True):
            tamper(f"{UPDATE} {change} WHERE id = %s", event_id)
    assert seal() is not None
    assert Seal.objects.get().count == len(ids) + 2
    assert found() == [("unreadable", 1, event_id) for event_id in ids]
    export(tmp_path / "file", signed_in(User.objects.create_user("eve")))
    told = check((tmp_path / "file").read_bytes().splitlines(keepends=True))
    assert (told.wrong, told.unreadable, told.events) == ("", len(ids), len(ids) + 3)
    for event_id in ids:
        tamper(f"{UPDATE} data = '[]', name = 'test.event', at = '2026-01-01 00:00:00' WHERE id = %s", event_id)
    assert {("edited", 1, event_id) for event_id in ids} <= {*found()}
    with connection.constraint_checks_disabled():
        tamper("DELETE FROM gate_auditevent")


@SERVERS
def test_nothing_is_nested_too_deeply_to_be_sealed(tamper: Sql) -> None:
    ids = dict(zip((150, 300, 5000), happen(3), strict=True))
    for depth, event_id in ids.items():
        tamper(f"{UPDATE} data = %s WHERE id = %s", "[" * depth + "]" * depth, event_id)
    assert seal() is not None
    assert found() == [("unreadable", 1, event_id) for depth, event_id in ids.items() if depth >= canonical.MAX_DEPTH]


@SERVERS
def test_a_seal_that_cannot_be_read_is_named_and_ends_nothing(subtests: pytest.Subtests, tamper: Sql) -> None:
    sealed(2, 2)
    changes = ["late = 'no JSON'", "gaps = '{}'", "late = '[[1]]'", "last = 9000000000000", "salt = 'x'", "format = 1"]
    for change in changes:
        with subtests.test(change), undone():
            tamper(f"UPDATE gate_seal SET {change} WHERE number = 1")
            assert "seal edited" in [kind for kind, *_ in found()]


# -- Records of before ------------------------------------------------------------------------------------------------


def sealed_before() -> None:
    """A batch over everything, as it was sealed before events were hashed with their text."""
    there = rows.read()
    made = Seal(number=1, first=1, last=there[-1]["id"], count=len(there), watch=1, salt=secrets.token_hex(32))
    made.gaps = [[1, there[0]["id"] - 1]] if there[0]["id"] > 1 else []
    hashes = [rows.hashed(row, made) for row in there]
    made.root, made.marks = proofs.root(hashes).hex(), "".join(map(proofs.mark_of, hashes))
    private = keys.own()
    made.key = keys.enrolled(private)
    body = rows.body_of(made)
    made.hash, made.signature = canonical.sha256(body), sign(private, SEAL, body)
    made.save(force_insert=True)


def test_batches_that_were_sealed_before_still_verify_and_none_of_the_tricks_works_on_them(
    bob: User, tmp_path: Path, tamper: Sql
) -> None:
    call = approved(bob, recording())
    assert run(call)
    sealed_before()
    happen(1)
    seal_all()
    assert [each.format for each in Seal.objects.all()] == [None, proofs.FORM]
    assert found() == []
    export(tmp_path / "file", signed_in(bob))
    assert check((tmp_path / "file").read_bytes().splitlines(keepends=True)).wrong == ""
    event = AuditEvent.objects.get(name="call.approved")
    batch = Seal.objects.get(number=1)
    for path in paths(event.data):
        # The order of keys was not sealed then.
        for name, other in tricks(event.data, path, digest_at(event, batch, path)):
            tamper(f"{UPDATE} data = %s WHERE id = %s", other, event.pk)
            assert named_in(batch, event) or name == "reordered", (path, name)
    tamper(f"{UPDATE} data = %s WHERE id = %s", "{}", event.pk)
    assert named(event)


def test_calls_whose_events_say_less_are_told_apart_and_not_taken_for_whole(bob: User, tamper: Sql) -> None:
    call = approved(bob, recording())
    assert run(call)
    known = {"row", "by", "decision", "argumentsDigest", "resultDigest", "tool", "caller"}
    for event in AuditEvent.objects.all():
        less = {name: value for name, value in event.data.items() if name not in known}
        tamper(f"{UPDATE} data = %s WHERE id = %s", json.dumps(less), event.pk)
    sealed_before()
    told = report()
    assert (told.findings, told.calls, told.uncovered) == ([], 1, 1)
    assert told.uncovered_until == rows.iso(fresh(call).created_at)
    # What they do say counts.
    ToolCall.objects.update(arguments={"text": "forged"})
    assert [kind for kind, *_ in found()] == ["not what was called"]


# -- Time ------------------------------------------------------------------------------------------------------------


def test_what_waits_too_long_for_its_seal_is_named() -> None:
    sealed(1)
    first, _ = happen(2)
    assert found() == []
    since = AuditEvent.objects.get(pk=first).at
    with travel(since + timedelta(seconds=31)):
        told = report()
    assert [(each.kind, each.batch, each.event) for each in told.findings] == [("not sealed", None, first)]
    assert told.findings[0].words.startswith("The last 2 events are not sealed; the oldest is 31 s old.")
