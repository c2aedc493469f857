"""Routes: which endpoint and model a conversation asks, what it may choose, and whether an endpoint answers.

A conversation asks the endpoint that it began with, or that its owner chose. Where that is gone or disabled it asks
nobody: another provider would read what was said to this one.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.agent import endpoints, limits, model_client, request
from hitlchat.agent.endpoints import ENVIRONMENT
from hitlchat.agent.model_client import Endpoint, ModelTrouble, uses_demo
from hitlchat.agent.models import Conversation, ModelEndpoint, SecondReader
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import translatable
from hitlchat.outbound.addresses import is_private_host
from hitlchat.secrets import references, sealing

REMOVED = gettext_noop(
    "The model endpoint “{name}” of this conversation was removed. Choose another model at the top of the conversation."
)
DISABLED = gettext_noop(
    "The model endpoint “{name}” of this conversation is disabled. Choose another model at the top of the "
    "conversation, or ask an administrator to enable it."
)
NOT_OFFERED = gettext_noop(
    "The model endpoint “{name}” no longer offers “{model}”. Choose another model at the top of the conversation."
)
USUAL_GONE = gettext_noop(
    "Your default model “{name}” is no longer available, so new conversations ask “{usual}”. Choose another default in "
    "the settings of a conversation."
)
TEST: Final = '{"role": "user", "content": "Answer with the one word: ready"}'
LONGEST_SHOWN: Final = 200
MOST_LISTED: Final = 2000


class NotOffered(Invalid):
    """No enabled endpoint offers that; `errors` says by field what was expected."""


def default() -> ModelEndpoint | None:
    """Return what new conversations begin with; None: the endpoint of the environment."""
    return endpoints.rows().filter(is_default=True).first()


def usual(user: User) -> tuple[Conversation, str]:
    """Return a conversation that has the endpoint and model with which those of this person begin, and is not stored;
    and why these are not the person's own choice, empty if they are or there is none.
    """
    own, usual = limits.own_defaults(user), Conversation(endpoint=default())
    if not own.chooses_model:
        return usual, ""
    chosen = Conversation(endpoint=own.endpoint, model=own.model)
    if own.endpoint is None or not trouble(chosen):
        return chosen, ""
    instead = model_client.endpoint().model if usual.endpoint is None else usual.endpoint.model
    name = f"{own.endpoint.name} · {own.model or own.endpoint.model}"
    return usual, translatable(USUAL_GONE.format(name=name, usual=instead))


def of(conversation: Conversation) -> Endpoint:
    """Return where the conversation asks. Raises: ModelTrouble, if it can ask nobody."""
    if why := trouble(conversation):
        raise ModelTrouble(why)
    row = conversation.endpoint
    return model_client.endpoint(conversation.model) if row is None else to(row, conversation.model)


def to(row: ModelEndpoint, model: str = "") -> Endpoint:
    """Return the way to a model of the endpoint, its usual one unless named. Raises: ModelTrouble, without its key."""
    try:
        key = endpoints.key_of(row)
    except (sealing.Unsealable, references.Missing) as error:
        why = str(error)
        said = why[:1].lower() + why[1:].rstrip(".")
        raise ModelTrouble(f"The key of the model endpoint “{row.name}” is not usable: {said}.") from error
    # Only where an administrator said so, by the address or beside it, and the operator has not ruled it out.
    host = urlsplit(row.base_url).hostname or ""
    may_be_private = bool(settings.MODEL_ALLOW_PRIVATE) and (row.allow_private or is_private_host(host))
    return Endpoint(
        row.base_url,
        key or model_client.NO_KEY,
        model or row.model,
        stored=row.pk,
        key_header=row.key_header,
        api=row.api,
        allow_private=may_be_private,
        thinks=row.reasoning,
        parallel_calls=row.parallel_calls,
    )


def trouble(conversation: Conversation | SecondReader, words: Callable[[str], str] = str) -> str:
    """Return why the conversation can ask nobody, and what to do; empty if it can. `words` may translate it."""
    row, model = conversation.endpoint, conversation.model
    if row is None:
        return ""
    if row.removed_at is not None:
        return words(REMOVED).format(name=row.name)
    if not row.enabled:
        return words(DISABLED).format(name=row.name)
    return "" if not model or model in row.offered else words(NOT_OFFERED).format(name=row.name, model=model)


def name_of(conversation: Conversation) -> str:
    """Return which model at which server it is, whether it can be asked or not."""
    row = conversation.endpoint
    if row is None:
        return model_client.endpoint(conversation.model).name
    return Endpoint(row.base_url, "", conversation.model or row.model).name


def takes_images(conversation: Conversation) -> bool:
    """Return whether the model is sent images: by the settings, and as its server has answered."""
    able = conversation.endpoint is None or conversation.endpoint.images
    return settings.MODEL_IMAGES > 0 and able and conversation.no_images_for != name_of(conversation)


# -- What a conversation may choose ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    endpoint: str
    model: str
    is_chosen: bool

    @property
    def value(self) -> str:
        """Return both names as `chosen` takes them apart."""
        return f"{self.endpoint}/{self.model}"


@dataclass(frozen=True)
class Choices:
    """All models, by endpoint; `missing`: what is chosen now, and cannot be any more."""

    groups: list[tuple[str, list[Choice]]]
    missing: str = ""

    @property
    def is_plain(self) -> bool:
        return not self.missing and sum(len(choices) for _, choices in self.groups) < 2

    @property
    def chosen(self) -> Choice | None:
        return next((each for _, group in self.groups for each in group if each.is_chosen), None)

    @property
    def value(self) -> str:
        return self.chosen.value if self.chosen else ""

    @property
    def options(self) -> list[Any]:
        """Return the choices of a form's field, by endpoint; first, what is chosen now and gone."""
        gone = [("", _("{name} (no longer available)").format(name=self.missing))] if self.missing else []
        return [*gone, *((name, [(each.value, each.model) for each in group]) for name, group in self.groups)]


def choices(conversation: Conversation | SecondReader | None) -> Choices:
    """Return what this conversation may choose, or a new one; or the second reader."""
    row = default() if conversation is None else conversation.endpoint
    model = conversation.model if conversation is not None else ""
    chosen_now = row and (row, model or row.model)
    usual = model_client.endpoint().model
    names = dict.fromkeys([usual, model or usual] if row is None and not uses_demo() else [usual])
    own = [
        Choice(ENVIRONMENT, name, is_chosen=row is None and (uses_demo() or name == (model or usual))) for name in names
    ]
    groups = [(_("Demo model") if uses_demo() else _("Environment"), own)]
    groups += [
        (each.name, [Choice(each.name, name, is_chosen=(each, name) == chosen_now) for name in each.offered])
        for each in endpoints.rows().filter(enabled=True)
    ]
    missing = conversation is not None and row is not None and trouble(conversation)
    return Choices(groups, f"{row.name} · {model or row.model}" if missing and row is not None else "")


def chosen(value: str) -> dict[str, Any]:
    """Return the columns of a conversation for a choice. Raises: NotOffered."""
    endpoint, _slash, model = value.partition("/")
    return columns(endpoint, model)


def columns(endpoint: str, model: str = "") -> dict[str, Any]:
    """Return the columns of a conversation that asks this endpoint, by name, for this model. Raises: NotOffered."""
    if endpoint == ENVIRONMENT:
        return {"endpoint": None, "model": model}
    row = endpoints.rows().filter(name=endpoint, enabled=True).first()
    if row is None:
        raise NotOffered({"endpoint": gettext_noop("There is no enabled model endpoint with this name.")})
    require_offered(row, model)
    return {"endpoint": row, "model": model}


def require_offered(row: ModelEndpoint | None, model: str) -> None:
    """Let pass a model that may be chosen at this endpoint. Raises: NotOffered."""
    if row is not None and model and model not in row.offered:
        raise NotOffered({"model": f"The model endpoint “{row.name}” offers {', '.join(row.offered[:20])}."})


# -- Whether it answers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """What a model answered within how many seconds, or which models its server has; or what went wrong, in words."""

    answer: str = ""
    models: tuple[str, ...] = ()
    error: str = ""
    seconds: float = 0.0


def test(row: ModelEndpoint | None) -> Trial:
    """Ask the usual model for one word, once. None: that of the environment."""
    began = time.monotonic()
    try:
        text = async_to_sync(_test)(_way(row))
    except ModelTrouble as error:
        return Trial(error=str(error))
    return Trial(answer=text[:LONGEST_SHOWN], seconds=time.monotonic() - began)


def listing(row: ModelEndpoint | None) -> Trial:
    """Ask the server for its models. None: that of the environment."""
    try:
        return Trial(models=async_to_sync(_list)(_way(row)))
    except ModelTrouble as error:
        return Trial(error=str(error))


def _way(row: ModelEndpoint | None) -> Endpoint:
    return model_client.endpoint() if row is None else to(row)


async def _test(where: Endpoint) -> str:
    # Of its own: the kept one belongs to the loop in which conversations are answered.
    async with model_client.new_client(where) as server:
        answer = await request.whole(where, request.request_body(where, [TEST], []), server=server)
    return where.hide(answer.text.strip())


async def _list(where: Endpoint) -> tuple[str, ...]:
    async with model_client.new_client(where) as server:
        answer = await request.models(where, server)
    # The names in a list of models, whatever else is in it.
    rows = answer.get("data", answer.get("models")) if isinstance(answer, dict) else answer
    models = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    names = [row.get("id") or row.get("name") for row in models]
    sound = [name for name in names if name and isinstance(name, str) and name.isprintable() and storable(name) == name]
    if not sound:
        raise ModelTrouble("The server lists no models. Enter a model's name as its provider writes it.")
    return tuple(map(where.hide, sorted({name[:LONGEST_SHOWN] for name in sound})[:MOST_LISTED]))
