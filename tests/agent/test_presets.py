"""Presets: what conversations begin with, which lowers nothing, and leaves those that have begun as they are."""

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.agent import conversations, endpoints, presets, routes, tool_sets
from hitlchat.agent.administering import BadDraft, InUse, NameTaken, OnlyPeople
from hitlchat.agent.conversations import BadConversation
from hitlchat.agent.models import Conversation, ModelEndpoint, OwnDefaults, Preset
from hitlchat.agent.presets import Draft, NoSuchPreset
from hitlchat.agent.routes import NotOffered
from hitlchat.base.problems import Conflict, NotFound
from hitlchat.gate import oversight
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import AuditEvent
from tests.conftest import signed_in
from tests.recorder import recorded_tool

pytestmark = pytest.mark.django_db(transaction=True)

SHOP = endpoints.Draft("shop", base_url="https://models.example/v1", model="large", other_models=("small",))
DESK = Draft(
    "Order desk",
    description="Orders and refunds",
    instructions="Look it up first.",
    endpoint="shop",
    model="small",
    tool_set="Orders",
    starters=("Where is order 42?", "Refund order 42"),
    temperature=0.2,
    max_tokens=500,
    max_turns=5,
    asks="risky",
    published=True,
)


@pytest.fixture
def shop(alice: User) -> ModelEndpoint:
    recorded_tool("refund")
    tool_sets.create(tool_sets.Draft("Orders", tools=("refund",)), signed_in(alice))
    return endpoints.create(SHOP, signed_in(alice))


@pytest.fixture
def desk(alice: User, shop: ModelEndpoint) -> Preset:
    return presets.create(DESK, signed_in(alice))


def held(made: Conversation) -> list[Any]:
    made = Conversation.objects.get(pk=made.pk)
    endpoint = made.endpoint.name if made.endpoint else None
    held_to = made.tool_set.name if made.tool_set else made.tools
    limits = [made.temperature, made.max_tokens, made.max_turns]
    return [made.preset, made.instructions, endpoint, made.model, held_to, *limits, oversight.strictness_of(made.pk)]


AS_THE_DESK = ["Order desk", "Look it up first.", "shop", "small", "Orders", 0.2, 500, 5, "risky"]


def test_a_conversation_takes_all_of_it_over_when_it_begins(bob: User, desk: Preset) -> None:
    assert held(conversations.create(bob, preset=desk)) == AS_THE_DESK


def test_what_it_leaves_empty_is_as_the_persons_conversations_begin(alice: User, bob: User, desk: Preset) -> None:
    plain = presets.create(Draft("Plain"), signed_in(alice))
    endpoints.create(replace(SHOP, name="mine"), signed_in(alice))
    conversations.begin_so(bob, instructions="Mine.", temperature=1.0, tool_set="Orders", asks="risky", endpoint="mine")
    assert held(conversations.create(bob, preset=plain)) == [
        *("Plain", "Mine.", "mine", "", "Orders", 1.0, None, None, "risky")
    ]
    assert held(conversations.create(bob, preset=desk)) == AS_THE_DESK


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize(
    "own,of_preset,found", [("every", "risky", "every"), ("tools", "risky", "risky"), ("sometimes", "tools", "every")]
)
def test_a_persons_own_default_weakens_no_preset(own: str, of_preset: str, found: str, bob: User, desk: Preset) -> None:
    Preset.objects.update(asks=of_preset)
    conversations.begin_so(bob)
    OwnDefaults.objects.update(asks=own)
    assert oversight.strictness_of(conversations.create(bob, preset=presets.named("Order desk")).pk) == found


def test_what_is_said_when_it_begins_takes_its_place(bob: User, desk: Preset) -> None:
    given = {"instructions": "", "tools": ["refund"], "temperature": None, **routes.columns("environment")}
    assert held(conversations.create(bob, preset=desk, **given)) == [
        *("Order desk", "", None, "", ["refund"], None, 500, 5, "risky")
    ]


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.parametrize(
    "of_preset,said,found",
    [
        ("every", "tools", "every"),
        ("every", "risky", "every"),
        ("risky", "every", "every"),
        ("tools", "risky", "risky"),
        ("sometimes", "tools", "every"),
    ],
)
def test_of_what_it_and_its_person_say_the_stricter_one_holds(
    of_preset: str, said: str, found: str, bob: User, desk: Preset
) -> None:
    Preset.objects.update(asks=of_preset)
    made = conversations.create(bob, preset=presets.named("Order desk"), asks=said)
    assert oversight.strictness_of(made.pk) == found


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_its_conversations_can_be_made_to_ask_more_and_never_less(bob: User, desk: Preset) -> None:
    made = conversations.create(bob, preset=desk)
    conversations.change(made, actor=signed_in(bob), asks="every")
    with pytest.raises(BadConversation, match="The preset of this conversation asks at least “risky”"):
        conversations.change(made, actor=signed_in(bob), title="Other", asks="tools")
    assert (oversight.strictness_of(made.pk), made.title) == ("every", "")
    conversations.change(made, actor=signed_in(bob), asks="risky")
    assert conversations.asks_choices(made) == ["risky", "every"]
    assert conversations.asks_choices(conversations.create(bob)) == ["tools", "risky", "every"]


def test_all_else_of_it_can_be_changed_afterwards(bob: User, desk: Preset) -> None:
    made = conversations.create(bob, preset=desk)
    own = {"instructions": "Mine.", "tools": None, "temperature": None, "max_turns": 9, "endpoint": "environment"}
    conversations.change(made, actor=signed_in(bob), **own)
    assert held(made) == ["Order desk", "Mine.", None, "", None, None, 500, 9, "risky"]


def test_conversations_stay_as_they_are_when_it_is_changed_unpublished_or_deleted(
    alice: User, bob: User, desk: Preset
) -> None:
    made = conversations.create(bob, preset=desk)
    presets.change(desk.pk, Draft("Other", asks="every"), signed_in(alice))
    assert held(made) == AS_THE_DESK
    with pytest.raises(NoSuchPreset):
        presets.named("Other")
    presets.remove(desk.pk, signed_in(alice))
    assert held(made) == AS_THE_DESK
    with pytest.raises(BadConversation):
        conversations.change(made, actor=signed_in(bob), asks="tools")


@pytest.mark.parametrize(
    "spoiled", [{"enabled": False}, {"removed_at": "2026-01-01T00:00:00Z"}, {"model": "x", "other_models": []}]
)
def test_nothing_begins_with_one_whose_model_cannot_be_asked_any_more(
    spoiled: dict[str, Any], bob: User, desk: Preset
) -> None:
    ModelEndpoint.objects.update(**spoiled)
    with pytest.raises(NotOffered):
        conversations.create(bob, preset=presets.named("Order desk"))
    assert not Conversation.objects.exists()


def test_a_conversation_to_which_files_were_sent_ahead_begins_with_it_once(bob: User, desk: Preset) -> None:
    made = conversations.create(bob, asks="every")
    conversations.begin_as(made, desk, signed_in(bob))
    assert held(made) == [*AS_THE_DESK[:-1], "every"]
    with pytest.raises(Conflict):
        conversations.begin_as(made, desk, signed_in(bob))


BAD: list[tuple[str, dict[str, Any]]] = [
    ("name", {"name": "a/b"}),
    ("description", {"description": "two\nlines"}),
    ("instructions", {"instructions": "x" * 10_001}),
    ("endpoint", {"endpoint": "nothing"}),
    ("endpoint", {"endpoint": None, "model": "small"}),
    ("model", {"model": "huge"}),
    ("model", {"endpoint": "environment", "model": "x" * 201}),
    ("tool_set", {"tool_set": "Nothing"}),
    ("starters", {"starters": ("x",) * 7}),
    ("starters", {"starters": ("",)}),
    ("starters", {"starters": ("x" * 301,)}),
    ("temperature", {"temperature": 3.0}),
    ("max_tokens", {"max_tokens": 0}),
    ("max_turns", {"max_turns": 101}),
    ("asks", {"asks": "never"}),
]


def test_what_cannot_be_names_its_field_and_changes_nothing(alice: User, desk: Preset) -> None:
    plain = presets.draft_of(presets.named("Order desk"))
    for field, more in BAD:
        wanted = Draft(**{**plain.__dict__, "name": "Other", **more})
        for write in (presets.create, lambda draft, actor: presets.change(desk.pk, draft, actor)):
            with pytest.raises(BadDraft) as error:
                write(wanted, signed_in(alice))
            assert list(error.value.errors) == [field]
        assert [presets.draft_of(row) for row in presets.rows()] == [plain] == [DESK]


def test_only_an_administrator_who_is_a_person_changes_them(alice: User, bob: User, desk: Preset) -> None:
    for actor in (signed_in(bob), Actor(alice.pk, "system")):
        for write in (
            lambda: presets.create(Draft("Other"), actor),  # noqa: B023
            lambda: presets.change(desk.pk, Draft("Other"), actor),  # noqa: B023
            lambda: presets.remove(desk.pk, actor),  # noqa: B023
        ):
            with pytest.raises(OnlyPeople):
                write()
    assert [presets.draft_of(row) for row in presets.rows()] == [DESK]


def test_a_set_that_one_has_cannot_be_removed(alice: User, desk: Preset) -> None:
    assert desk.tool_set is not None
    with pytest.raises(InUse, match="The preset “Order desk” uses this tool set"):
        tool_sets.remove(desk.tool_set.pk, signed_in(alice))


def test_a_name_is_one_presets_and_one_that_is_gone_says_so(alice: User, desk: Preset) -> None:
    with pytest.raises(NameTaken):
        presets.create(Draft("order DESK"), signed_in(alice))
    presets.remove(desk.pk, signed_in(alice))
    for write in (
        lambda: presets.change(desk.pk, DESK, signed_in(alice)),
        lambda: presets.remove(desk.pk, signed_in(alice)),
    ):
        with pytest.raises(NotFound):
            write()


def test_each_change_is_on_record_and_one_that_changes_nothing_is_not(alice: User, desk: Preset) -> None:
    presets.change(desk.pk, DESK, signed_in(alice))
    presets.change(desk.pk, Draft(**{**DESK.__dict__, "published": False}), signed_in(alice))
    presets.remove(desk.pk, signed_in(alice))
    rows = AuditEvent.objects.filter(name__startswith="preset.").order_by("pk")
    assert [row.name for row in rows] == ["preset.added", "preset.changed", "preset.removed"]
    assert (rows[1].data["before"], rows[1].data["after"]) == ({"published": True}, {"published": False})


def test_starters_that_cannot_be_read_are_none(desk: Preset) -> None:
    Preset.objects.update(starters={"a": 1})
    assert presets.starters(presets.named("Order desk")) == ()
