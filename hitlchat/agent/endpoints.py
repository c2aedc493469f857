"""Model endpoints as administrators keep them: what they say of one, what may be wrong with it, and every change."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.agent import model_client
from hitlchat.agent.administering import BEGINS_WITH_IT, LONGEST_NAME, BadDraft, InUse, Subject, is_line
from hitlchat.agent.model_client import Endpoint
from hitlchat.agent.models import Api, KeyHeader, ModelEndpoint
from hitlchat.gate.actor import Actor
from hitlchat.outbound.addresses import DEFAULT_PORTS, is_private_host
from hitlchat.secrets import references, sealing

PURPOSE: Final = "model key"
# The one that the variables OPENAI_… describe, and that only they change.
ENVIRONMENT: Final = "environment"
LONGEST_MODEL, LONGEST_URL, LONGEST_KEY = 200, 2000, 8000
MOST_MODELS: Final = 200
LONGEST_CONTEXT: Final = 100_000_000
HIGHEST_PRICE: Final = 999_999
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PLACES: Final = {
    "/chat/completions": gettext_noop("Leave out /chat/completions: it is added."),
    "/responses": gettext_noop("Leave out /responses: it is added."),
}
NO_ADDRESS = gettext_noop("Expected an address such as https://api.example.com/v1.")
ANOTHER_HOST = gettext_noop(
    "The address now leads to another host: enter the key again, so that no other server gets it by accident."
)


@dataclass(frozen=True)
class Draft:
    """An endpoint as an administrator describes it. `key` None: the one that is stored stays; empty: there is none."""

    name: str
    base_url: str = ""
    model: str = ""
    key: str | None = None
    key_header: str = KeyHeader.BEARER.value
    api: str = Api.CHAT.value
    other_models: tuple[str, ...] = ()
    context_length: int | None = None
    images: bool = True
    reasoning: bool = False
    parallel_calls: bool = True
    input_price: Decimal | None = None
    output_price: Decimal | None = None
    allow_private: bool = False
    enabled: bool = True


FIELDS: Final = tuple(name for name in Draft.__dataclass_fields__ if name != "key")
# What the record says of an endpoint; of its key, only that it changed.
RECORDED: Final = (*(name for name in FIELDS if name != "base_url"), "is_default")


def rows() -> QuerySet[ModelEndpoint]:
    return ModelEndpoint.objects.filter(removed_at=None)


def draft_of(row: ModelEndpoint) -> Draft:
    """Return the endpoint as it is, to be changed; without its key, which keeps that."""
    return Draft(**{name: getattr(row, name) for name in FIELDS} | {"other_models": tuple(row.other_models)})


def environment() -> Draft:
    """Return what the environment says of its endpoint, which has no row."""
    where = model_client.endpoint()
    price = None if settings.OPENAI_INPUT_PRICE is None else Decimal(str(settings.OPENAI_INPUT_PRICE))
    output = None if settings.OPENAI_OUTPUT_PRICE is None else Decimal(str(settings.OPENAI_OUTPUT_PRICE))
    context = settings.OPENAI_CONTEXT_LENGTH or None
    if where.is_demo:
        context = price = output = None
    return Draft(
        ENVIRONMENT, where.shown_url, where.model, context_length=context, input_price=price, output_price=output
    )


def reference_of(row: ModelEndpoint) -> str:
    """Return the reference that the key is; empty for a sealed key, and for none."""
    return row.key if references.REFERENCE.fullmatch(row.key) else ""


def key_of(row: ModelEndpoint) -> str:
    """Return the key itself, empty if there is none. Raises: Unsealable, Missing."""
    if reference_of(row):
        return references.filled(row.key)
    return sealing.unseal(row.key, PURPOSE) if row.key else ""


def problems(draft: Draft, row: ModelEndpoint | None = None) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, wrong in (*_of_texts(draft), *_of_address(draft), *_of_key(draft, row), *_of_numbers(draft)):
        found.setdefault(field, wrong)
    return found


def _of_texts(draft: Draft) -> Iterator[tuple[str, str]]:
    if not _NAME.fullmatch(draft.name) or len(draft.name) > LONGEST_NAME or draft.name.lower() == ENVIRONMENT:
        yield "name", gettext_noop("Expected up to 64 letters, digits, dots, _ and -, and not “environment”.")
    if not _is_model(draft.model):
        yield "model", gettext_noop("Expected the name of a model, of up to 200 characters.")
    if len(draft.other_models) > MOST_MODELS or not all(map(_is_model, draft.other_models)):
        yield "other_models", gettext_noop("Expected up to 200 names of models, of up to 200 characters each.")


def _is_model(name: str) -> bool:
    return bool(name) and is_line(name, LONGEST_MODEL)


def _of_address(draft: Draft) -> Iterator[tuple[str, str]]:
    parts = _parts(draft.base_url)
    if parts is None:
        yield "base_url", NO_ADDRESS
    elif parts.username is not None or parts.fragment:
        yield "base_url", gettext_noop("Leave out user name, password and fragment: the key has its own field.")
    elif advice := next((words for place, words in _PLACES.items() if parts.path.rstrip("/").endswith(place)), ""):
        yield "base_url", advice
    elif parts.scheme == "http" and not draft.allow_private and not is_private_host(parts.hostname or ""):
        yield (
            "base_url",
            gettext_noop("Expected https://: otherwise messages are sent unencrypted to a public address."),
        )


def _parts(url: str) -> SplitResult | None:
    """Return the parts of an address that can be asked; None of any other."""
    try:
        parts = urlsplit(url)
        has_place = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    is_spelled = len(url) <= LONGEST_URL and url.isascii() and url.isprintable() and not re.search(r"[\s\\${}]", url)
    return parts if is_spelled and has_place and parts.scheme in DEFAULT_PORTS else None


def _of_key(draft: Draft, row: ModelEndpoint | None) -> Iterator[tuple[str, str]]:
    key = draft.key
    if key is None:
        if row is not None and row.key and _origin(draft.base_url) != _origin(row.base_url):
            yield "key", ANOTHER_HOST
        return
    names = list(references.names(key))
    if len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        yield "key", gettext_noop("Expected a key without spaces, of up to 8,000 characters.")
    elif names and not references.REFERENCE.fullmatch(key):
        yield "key", gettext_noop("Expected a key, or just a reference such as ${NAME}.")
    elif names and (why := references.withheld(names[0])):
        yield "key", why


def _origin(url: str) -> tuple[str, str, int | None] | None:
    parts = _parts(url)
    return parts and (parts.scheme, (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS[parts.scheme])


def _of_numbers(draft: Draft) -> Iterator[tuple[str, str]]:
    if draft.key_header not in KeyHeader.values:
        yield "key_header", f"Expected one of {', '.join(KeyHeader.values)}."
    if draft.api not in Api.values:
        yield "api", f"Expected one of {', '.join(Api.values)}."
    if draft.context_length is not None and not 1 <= draft.context_length <= LONGEST_CONTEXT:
        yield "context_length", gettext_noop("Expected a number of tokens from 1 to 100,000,000.")
    for field in ("input_price", "output_price"):
        price = getattr(draft, field)
        if price is not None and not (price.is_finite() and 0 <= price <= HIGHEST_PRICE):
            yield field, gettext_noop("Expected a price from 0 to 999,999.")
    if (draft.input_price is None) != (draft.output_price is None):
        missing = "input_price" if draft.input_price is None else "output_price"
        yield missing, gettext_noop("Expected both prices or neither.")


def _recorded(row: ModelEndpoint) -> dict[str, Any]:
    """Return what the record keeps: where it is without the query, which may be anybody's."""
    plain = {name: getattr(row, name) for name in RECORDED}
    prices = {
        name: None if (price := plain[name]) is None else f"{price:f}" for name in ("input_price", "output_price")
    }
    return plain | prices | {"address": Endpoint(row.base_url, "", row.model).shown_url}


def _columns(draft: Draft, row: ModelEndpoint | None) -> dict[str, Any]:
    if errors := problems(draft, row):
        raise BadDraft(errors)
    if row is not None and row.is_default and not draft.enabled:
        raise InUse(BEGINS_WITH_IT)
    found: dict[str, Any] = asdict(draft) | {"other_models": list(dict.fromkeys(draft.other_models))}
    key = found.pop("key")
    if key is None:
        return found
    return found | {"key": key if not key or any(references.names(key)) else sealing.seal(key, PURPOSE)}


_subject = Subject[ModelEndpoint, Draft](
    word="endpoint",
    rows=rows,
    recorded=_recorded,
    columns=_columns,
    only_people=gettext_noop("Only an administrator may change model endpoints: sign in, or use an approver token."),
    gone=gettext_noop("This model endpoint was removed."),
    name_taken=gettext_noop("There is already an endpoint with this name."),
    unrecorded=("key", "base_url"),
)

create = _subject.create
# Has new conversations begin with this endpoint; None: with that of the environment.
begin_with = _subject.begin_with


def change(endpoint_id: UUID, draft: Draft, actor: Actor, *, begins: bool = False) -> ModelEndpoint:
    """Change an endpoint; on record. `begins`: new conversations begin with it.

    Raises: BadDraft, NameTaken, OnlyPeople, InUse, NotFound.
    """
    with transaction.atomic():
        row = _subject.change(endpoint_id, draft, actor)
        if begins:
            begin_with(row.pk, actor)
    return row


def remove(endpoint_id: UUID, actor: Actor) -> None:
    """Remove an endpoint with its key; on record. Conversations that use it say so, and ask nobody.

    Raises: OnlyPeople, InUse, NotFound.
    """
    with _subject.removing(endpoint_id, actor) as row:
        ModelEndpoint.objects.filter(pk=row.pk).update(removed_at=timezone.now(), enabled=False, key="")
