"""The page of the record: for administrators, everything that the console can do with it."""

import json
from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from hitlchat.accounts.models import Role
from hitlchat.accounts.roles import give
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.health import Prober
from hitlchat.record.checking import check
from hitlchat.record.sealing import seal_all
from tests.clock import travel
from tests.gate.asking import approved, recording, run
from tests.record.conftest import happen
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

LINES = "application/x-ndjson"


@pytest.fixture
def admin(alice: User, client: Client) -> Client:
    give(alice, Role.ADMINISTRATOR)
    client.force_login(User.objects.get(pk=alice.pk))
    return client


@pytest.fixture
def story(bob: User) -> ToolCall:
    call = approved(bob, recording())
    assert run(call)
    seal_all()
    return call


def text_of(client: Client, path: str = "/record/") -> str:
    return client.get(path).content.decode()


def downloaded(client: Client, path: str, form: dict[str, str]) -> bytes:
    answer = client.post(path, form)
    assert answer.status_code == 200
    return b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def test_only_administrators_are_led_to_it(client: Client, bob: User) -> None:
    client.force_login(bob)
    assert b'href="/record/"' not in client.get("/insights/").content


def test_verifying_tells_how_far_it_is_and_what_was_found_goes_on_record(admin: Client, story: ToolCall) -> None:
    assert "Not verified yet." in text_of(admin)
    answer = admin.post("/record/verify", headers={"Accept": LINES})
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert lines == [{"done": 1, "of": 2}, {"done": 2, "of": 2}, {"whole": True}]
    event = AuditEvent.objects.get(name="record.verified")
    assert (event.data["whole"], event.data["by"]["name"]) == (True, "alice")
    assert "<b>Intact</b>: 4 events in 1 batch and 1 call, verified by alice" in text_of(admin)
    with time_machine.travel(event.at + timedelta(days=8), tick=False):
        assert "<b>Not verified since <time" in text_of(admin)
    ToolCall.objects.update(status="failed")
    assert admin.post("/record/verify").status_code == 302
    told = text_of(admin)
    assert "<b>Broken</b>" in told
    assert f"Call {story.pk} is failed" in told


def test_what_it_exports_and_the_receipts_are_checked_there(admin: Client, story: ToolCall) -> None:
    for path, form in (("/record/export", {}), ("/record/receipt", {"call": str(story.pk)})):
        file = downloaded(admin, path, form)
        assert check(file.splitlines(keepends=True)).wrong == ""
        told = admin.post("/record/check", {"file": SimpleUploadedFile("mine", file)}).content.decode()
        assert "1 receipt" in told
        bad = SimpleUploadedFile("mine", file.replace(b"call.approved", b"call.declined"))
        assert "Not genuine: line" in admin.post("/record/check", {"file": bad}).content.decode()
    for path, wrong in (("export", {"from": "soon"}), ("receipt", {"call": "x"}), ("check", {})):
        assert admin.post(f"/record/{path}", wrong).status_code == 422
    assert admin.post("/record/export", {"to": "2001-01-01"}).status_code == 422


def test_days_at_the_ends_of_time_are_refused_or_answered(
    subtests: pytest.Subtests, admin: Client, story: ToolCall, settings: Settings
) -> None:
    wrong = [(day, "UTC") for day in ("9999-12-30", "0000-01-01", "10000-01-01", "2026-02-30")]
    ends = [("9999-12-31", "Pacific/Pago_Pago"), ("0001-01-01", "Pacific/Kiritimati")]
    for day, zone in [*wrong, *ends]:
        with subtests.test(day=day, zone=zone):
            settings.TIME_ZONE = zone
            for field in ("from", "to"):
                assert admin.post("/record/export", {field: day}).status_code == 422


def test_it_says_loudly_that_events_wait_too_long_for_their_seal(admin: Client) -> None:
    happen(1)
    assert "Events have been waiting " not in text_of(admin)
    with travel(AuditEvent.objects.earliest("id").at + timedelta(seconds=40)):
        assert "Events have been waiting 40 s to be sealed." in text_of(admin)
        # What another test had it look for counts for some seconds more.
        until(lambda: admin.get("/readyz").json()["record"]["overdue"], "the server says that its record is overdue")
        assert round(admin.get("/readyz").json()["record"]["oldestUnsealedSeconds"]) == 40
        assert "hitlchat_record_oldest_unsealed_seconds 40." in text_of(admin, "/metrics")
    seal_all()
    # Another process, which has not looked before.
    assert Prober().look().unsealed == 0
