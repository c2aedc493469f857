"""Model endpoints: kept by administrators, chosen in conversations. A key is in no answer."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Annotated, Literal

from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import AfterValidator, Field

from hitlchat.agent import endpoints, model_client, routes, second
from hitlchat.agent.administering import BadDraft
from hitlchat.agent.endpoints import ENVIRONMENT, Draft
from hitlchat.agent.models import ModelEndpoint, SecondReader
from hitlchat.api.auth import ApiRequest, administrator, only_after
from hitlchat.api.contract import Body, Shape, Text, examples, read

Header = Literal["Authorization", "api-key"]
ApiName = Literal["chat", "responses"]
Price = Annotated[float, Field(ge=0, le=endpoints.HIGHEST_PRICE), AfterValidator(lambda price: Decimal(str(price)))]
OF_VARIABLES = "This endpoint is set by the variables OPENAI_…. Only its use as the default can be changed."


class EndpointChange(Body):
    """Every field that an administrator decides; one that is left out stays as it is."""

    model_config = examples({"enabled": False}, {"isDefault": True}, {"key": "${MISTRAL_API_KEY}"})

    name: Text = ""
    base_url: Text = ""
    key: Text | None = Field(
        default=None,
        description="Stored encrypted unless a reference such as `${NAME}`; empty: none; null: as stored.",
    )
    key_header: Header = "Authorization"
    api: ApiName = Field(default="chat", description="Chat Completions, or the Responses API.")
    model: Text = ""
    other_models: list[Text] = Field(default_factory=list)
    context_length: int | None = None
    images: bool = True
    reasoning: bool = False
    parallel_calls: bool = True
    input_price: Price | None = Field(default=None, description="Of a million tokens, in MODEL_CURRENCY.")
    output_price: Price | None = None
    allow_private: bool = False
    enabled: bool = True
    is_default: Literal[True] = Field(default=True, description="Makes new conversations use this endpoint.")


class NewEndpoint(EndpointChange):
    model_config = examples(
        {"name": "ollama", "baseUrl": "http://127.0.0.1:11434/v1", "model": "qwen3", "contextLength": 32768},
        {
            "name": "mistral",
            "baseUrl": "https://api.mistral.ai/v1",
            "key": "${MISTRAL_API_KEY}",
            "model": "mistral-large-latest",
            "inputPrice": 2,
            "outputPrice": 6,
        },
    )

    name: Text = Field(...)
    base_url: Text = Field(...)
    model: Text = Field(...)


class Endpoint(Shape):
    """`source`: whether an administrator added it, or the variables OPENAI_… describe it."""

    name: str
    source: Literal["administrator", "environment"]
    base_url: str
    has_key: bool
    key_reference: str = Field(description="The key, if it is a reference; empty otherwise.")
    key_header: Header
    api: ApiName
    model: str
    other_models: list[str]
    context_length: int | None
    images: bool
    reasoning: bool
    parallel_calls: bool
    input_price: float | None
    output_price: float | None
    allow_private: bool
    enabled: bool
    is_default: bool
    created_at: datetime | None
    updated_at: datetime | None


class EndpointTrial(Shape):
    """`error` says in words what came in the way."""

    ok: bool
    answer: str
    error: str
    seconds: float


class EndpointModels(Shape):
    models: list[str]
    error: str


class ModelChoice(Shape):
    """`isDefault`: new conversations ask it."""

    endpoint: str
    model: str
    is_default: bool = read("is_chosen")


class Reader(Body):
    """`mode`: `caution` shows what the model cautions about, with `tick` a yes then takes a tick as well."""

    mode: Literal["off", "caution", "tick"]
    endpoint: Text = ENVIRONMENT
    model: Text = Field(default="", description="Empty: the default model of the endpoint.")


class SecondOpinion(Shape):
    """Since when the model reads calls that wait, how many it was asked about, and how often nothing came of that."""

    mode: Literal["off", "caution", "tick"]
    endpoint: str
    model: str
    since: datetime
    asked: int
    failed: int
    failure: str = Field(description="What went wrong last, in words.")
    failed_at: datetime | None


router = Router(tags=["endpoints"], by_alias=True)
router.add_decorator(only_after(partial(administrator, to="see and change model endpoints")))
models_router = Router(tags=["endpoints"], by_alias=True)
second_router = Router(tags=["endpoints"], by_alias=True)
second_router.add_decorator(only_after(partial(administrator, to="see and change the second opinion")))


@models_router.get("", response=list[ModelChoice])
def list_choices(request: ApiRequest) -> list[routes.Choice]:
    """The models that conversations may choose: those of enabled endpoints, and with which one yours begin."""
    beginning, _fallen_back = routes.usual(request.auth.user)
    return [each for _name, group in routes.choices(beginning).groups for each in group]


@second_router.get("", response=SecondOpinion)
def read_second_opinion(request: ApiRequest) -> SecondOpinion:
    """Which model reads calls that wait, if one does, and how often it failed."""
    return _reader(second.chosen())


@second_router.put("", response=SecondOpinion)
def choose_second_opinion(request: ApiRequest, body: Reader) -> SecondOpinion:
    """Turn the second opinion on or off, or have another model read. It counts anew from here."""
    return _reader(second.choose(second.Draft(**body.model_dump()), request.auth.actor))


@router.get("", response=list[Endpoint])
def list_endpoints(request: ApiRequest) -> list[Endpoint]:
    """Every model endpoint, that of the environment first."""
    return [_environment(), *map(_endpoint, endpoints.rows())]


@router.post("", response={201: Endpoint})
def create_endpoint(request: ApiRequest, body: NewEndpoint) -> Endpoint:
    """A new endpoint, which conversations may choose at once. For people: an `api` token may not."""
    actor, begins = request.auth.actor, "is_default" in body.model_fields_set
    row = endpoints.create(Draft(**body.given("is_default")), actor, begins=begins)
    return _endpoint(get_object_or_404(endpoints.rows(), pk=row.pk))


@router.get("/{name}", response=Endpoint)
def read_endpoint(request: ApiRequest, name: str) -> Endpoint:
    return _environment() if name == ENVIRONMENT else _endpoint(_named(name))


@router.patch("/{name}", response=Endpoint)
def change_endpoint(request: ApiRequest, name: str, body: EndpointChange) -> Endpoint:
    """Change the fields that are given. An address on another host wants the key once more."""
    actor = request.auth.actor
    if name == ENVIRONMENT:
        if other := body.model_fields_set - {"is_default"}:
            raise BadDraft(dict.fromkeys(other, OF_VARIABLES))
        if "is_default" in body.model_fields_set:
            endpoints.begin_with(None, actor)
        return _environment()
    row, begins = _named(name), "is_default" in body.model_fields_set
    endpoints.change(row.pk, replace(endpoints.draft_of(row), **body.given("is_default")), actor, begins=begins)
    return _endpoint(get_object_or_404(endpoints.rows(), pk=row.pk))


@router.delete("/{name}", response={204: None})
def delete_endpoint(request: ApiRequest, name: str) -> None:
    """Remove the endpoint with its key; conversations that use it say so, and ask nobody. 409 for the default one."""
    actor = request.auth.actor
    if name == ENVIRONMENT:
        raise BadDraft({"name": OF_VARIABLES})
    endpoints.remove(_named(name).pk, actor)


@router.post("/{name}/test", response=EndpointTrial)
def test_endpoint(request: ApiRequest, name: str) -> EndpointTrial:
    """Ask its model for one word; may take as long as the model does."""
    trial = routes.test(_chosen(name))
    return EndpointTrial.of(trial, ok=not trial.error)


@router.get("/{name}/models", response=EndpointModels)
def list_models(request: ApiRequest, name: str) -> routes.Trial:
    """Ask the server which models it has."""
    return routes.listing(_chosen(name))


def _reader(row: SecondReader) -> SecondOpinion:
    return SecondOpinion.of(row, endpoint=second.draft_of(row).endpoint)


def _named(name: str) -> ModelEndpoint:
    return get_object_or_404(endpoints.rows(), name=name)


def _chosen(name: str) -> ModelEndpoint | None:
    return None if name == ENVIRONMENT else _named(name)


def _endpoint(row: ModelEndpoint) -> Endpoint:
    return Endpoint.of(row, source="administrator", has_key=bool(row.key), key_reference=endpoints.reference_of(row))


def _environment() -> Endpoint:
    where = model_client.endpoint()
    return Endpoint.of(
        endpoints.environment(),
        source="environment",
        has_key=where.has_key,
        key_reference="",
        api="responses" if where.api == model_client.RESPONSES else "chat",
        allow_private=True,
        is_default=routes.default() is None,
        created_at=None,
        updated_at=None,
    )
