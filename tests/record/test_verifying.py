"""Whatever is done to a sealed record, verifying says so, and which event it was."""

import pytest
from django.contrib.auth.models import User
from django.db import connection

from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import RecordKey, Seal, ToolCall
from hitlchat.record import keys, worker
from hitlchat.record.proofs import hash_of
from hitlchat.record.rows import body_of
from hitlchat.record.sealing import seal, seal_all
from tests.gate.asking import approved, ask, recording
from tests.record.conftest import Sql, found, happen, report, sealed, undone

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.guarantee("audit:complete"),
]
SERVERS = pytest.mark.servers("the SQL differs between the databases")

UPDATE = "UPDATE gate_auditevent SET"


def test_a_record_that_nobody_touched_is_whole_and_says_what_is_not_sealed_yet() -> None:
    sealed(3, 2)
    happen(2)
    seen = report()
    assert (seen.is_whole, seen.batches, seen.events, seen.tail) == (True, 2, 5, 2)
    assert seen.last_seal == Seal.objects.latest("number").hash


def test_a_record_without_anything_is_whole() -> None:
    assert seal() is None
    assert report().is_whole


@SERVERS
@pytest.mark.guarantee("SR-45")
def test_an_edited_event_is_named(subtests: pytest.Subtests, tamper: Sql) -> None:
    _, second, _ = sealed(2, 3, 2)
    says = ("name = 'call.declined'", "means = 'session'", "data = '{\"number\":7}'", "data = 'no JSON'")
    for change in (*says, "at = '2026-01-01 00:00:00'"):
        with subtests.test(change), undone():
            tamper(f"{UPDATE} {change} WHERE id = %s", second[1])
            assert found() == [("edited", 2, second[1])]


@SERVERS
def test_who_did_it_and_to_what_are_sealed_too(alice: User, bob: User, tamper: Sql) -> None:
    first, second = ask(bob, recording()), ask(bob, recording("other"))
    seal_all()
    tamper(f"{UPDATE} actor_id = %s WHERE call_id = %s", alice.pk, _id(first))
    tamper(f"{UPDATE} call_id = %s WHERE call_id = %s", _id(first), _id(second))
    assert [kind for kind, *_ in found()][:2] == ["edited", "edited"]


@pytest.mark.guarantee("SR-45")
def test_a_deleted_event_is_named(tamper: Sql) -> None:
    _, second, _ = sealed(2, 3, 2)
    tamper("DELETE FROM gate_auditevent WHERE id = %s", second[1])
    assert found() == [("missing", 2, second[1])]


@pytest.mark.guarantee("SR-45")
def test_an_event_that_was_put_in_is_named(tamper: Sql) -> None:
    first, _ = sealed(2, 2)
    tamper(f"{UPDATE} id = -5 WHERE id = %s", first[0])
    assert found() == [("inserted", None, -5), ("missing", 1, first[0])]


@pytest.mark.guarantee("SR-45")
def test_swapped_events_are_told_from_edited_ones(tamper: Sql) -> None:
    ((one, two, _),) = sealed(3)
    for before, after in ((one, 10**6), (two, one), (10**6, two)):
        tamper(f"{UPDATE} id = %s WHERE id = %s", after, before)
    assert found() == [("reordered", 1, one), ("edited", 1, two)]


@pytest.mark.guarantee("SR-45")
def test_an_edited_seal_is_named(subtests: pytest.Subtests, tamper: Sql) -> None:
    sealed(2, 2, 2)
    for column, value in {"root": "0" * 64, "marks": "", "salt": "1" * 64, "late": "[1]", "count": 1}.items():
        with subtests.test(column), undone():
            tamper(f"UPDATE gate_seal SET {column} = %s WHERE number = 2", value)
            assert ("seal edited", 2, None) in found()


def test_a_seal_made_anew_without_the_key_is_found(tamper: Sql) -> None:
    sealed(2, 2, 2)
    forged = Seal.objects.get(pk=2)
    forged.root = "0" * 64
    tamper("UPDATE gate_seal SET root = %s, hash = %s WHERE number = 2", forged.root, hash_of(body_of(forged)))
    kinds = [(kind, batch) for kind, batch, _ in found()]
    assert ("seal unsigned", 2) in kinds
    assert ("chain broken", 3) in kinds


def test_a_seal_that_is_gone_is_missed(tamper: Sql) -> None:
    sealed(2, 2, 2)
    tamper("DELETE FROM gate_seal WHERE number = 2")
    assert found()[0] == ("seal missing", 2, None)


@pytest.mark.guarantee("SR-45")
def test_a_record_cut_off_at_its_end_is_found_by_what_was_noted_beside_it_or_elsewhere(tamper: Sql) -> None:
    _, last = sealed(2, 2)
    noted = Seal.objects.latest("number").hash
    assert worker.advance() is None
    tamper("DELETE FROM gate_seal WHERE number = 2")
    tamper("DELETE FROM gate_auditevent WHERE id >= %s", last[0])
    assert found() == [("truncated", 2, None)]
    # Sealing goes on, and what was noted stays noted.
    sealed(1)
    assert worker.advance() is not None
    assert ("truncated", 2, None) in found()
    worker.file().unlink()
    # SQLite does not give the ids of what was removed once more.
    assert [kind for kind, *_ in found()] == (["gap"] if connection.vendor == "sqlite" else [])
    assert ("truncated", None, None) in found(seal=noted)


@SERVERS
@pytest.mark.guarantee("SR-46")
def test_what_was_shown_is_held_to_the_digest_in_the_record(bob: User, tamper: Sql) -> None:
    call = approved(bob, recording())
    seal_all()
    assert found() == []
    text = "UPDATE gate_approval SET disclosure = replace(disclosure, 'hello', 'hallo') WHERE call_id = %s"
    tamper(text, _id(call))
    assert [(kind, batch) for kind, batch, _ in found()] == [("not what was shown", 1)]


def test_the_key_that_was_noted_vouches_for_those_that_followed_it_and_for_no_other(
    data_folder: object, tamper: Sql
) -> None:
    sealed(2)
    noted = keys.own_fingerprint()
    assert noted is not None
    replace_key()
    sealed(2)
    assert keys.own_fingerprint() != noted
    assert found(key=noted) == []
    assert found() == []
    tamper("UPDATE gate_recordkey SET endorsement = ''")
    assert found(key=noted) == [("key not vouched for", None, None)]
    assert found() == []
    assert found(key="0" * 64) == [("key not vouched for", None, None)]


def test_an_intruder_who_seals_with_a_key_of_their_own_is_found(tamper: Sql) -> None:
    sealed(2)
    own = keys.file().read_bytes()
    keys.file().unlink()
    with pytest.raises(keys.OtherKey, match="seals nothing"):
        sealed(1)
    for statement in ("DELETE FROM gate_seal", "DELETE FROM gate_recordkey"):
        tamper(statement)
    seal_all()
    assert found() == []
    keys.file().write_bytes(own)
    assert found() == [("key not vouched for", None, None)]
    # Nor does it help to pass it off as an older one.
    assert RecordKey.objects.count() == 1


def replace_key() -> None:
    fresh = keys.file().with_name("fresh")
    keys.rotate(fresh, SYSTEM)
    fresh.replace(keys.file())


def _id(call: ToolCall) -> object:
    return call.pk.hex if connection.vendor == "sqlite" else call.pk


@SERVERS
@pytest.mark.guarantee("SR-47")
def test_what_ran_unasked_is_held_to_its_arguments(bob: User, tamper: Sql) -> None:
    call = ask(bob, recording(mode="DISABLED"))
    seal_all()
    assert found() == []
    tamper("UPDATE gate_toolcall SET arguments = replace(arguments, 'hello', 'hallo') WHERE id = %s", _id(call))
    assert [(kind, batch) for kind, batch, _ in found()] == [("not what was called", 1)]
