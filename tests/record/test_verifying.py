"""Whatever is done to a sealed record, verifying says so, and which event it was."""

import pytest
from django.db import connection

from hitlchat.base import canonical
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import RecordKey, Seal
from hitlchat.record import keys, sealing
from hitlchat.record.rows import body_of
from hitlchat.record.sealing import seal, seal_all
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
def test_an_event_that_is_edited_deleted_or_put_in_is_named(subtests: pytest.Subtests, tamper: Sql) -> None:
    _, (_, event, _), _ = sealed(2, 3, 2)
    says = ("name = 'call.declined'", "means = 'session'", "data = '{\"number\":7}'", "data = 'no JSON'")
    changes: dict[str, list[tuple[str, int | None, int]]]
    changes = {f"{UPDATE} {change} WHERE id = %s": [("edited", 2, event)] for change in says}
    changes[f"{UPDATE} at = '2026-01-01 00:00:00' WHERE id = %s"] = [("edited", 2, event)]
    changes["DELETE FROM gate_auditevent WHERE id = %s"] = [("missing", 2, event)]
    changes[f"{UPDATE} id = -5 WHERE id = %s"] = [("inserted", None, -5), ("missing", 2, event)]
    for statement, findings in changes.items():
        with subtests.test(statement), undone():
            tamper(statement, event)
            assert found() == findings


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
    tamper("UPDATE gate_seal SET root = %s, hash = %s WHERE number = 2", forged.root, canonical.sha256(body_of(forged)))
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
    assert sealing.advance() is None
    tamper("DELETE FROM gate_seal WHERE number = 2")
    tamper("DELETE FROM gate_auditevent WHERE id >= %s", last[0])
    assert found() == [("truncated", 2, None)]
    # Sealing goes on, and what was noted stays noted.
    sealed(1)
    assert sealing.advance() is not None
    assert ("truncated", 2, None) in found()
    sealing.mark_file().unlink()
    # SQLite does not give the ids of what was removed once more.
    assert [kind for kind, *_ in found()] == (["gap"] if connection.vendor == "sqlite" else [])
    assert ("truncated", None, None) in found(seal=noted)


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
