"""What the rules would say about a call that nobody makes."""

from typing import Annotated, Literal

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from ninja import Router
from ninja.errors import AuthorizationError, HttpError
from pydantic import Field

from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.api.auth import ApiRequest
from hitlchat.api.schemas import Body, Line, Object, Shape
from hitlchat.gate import simulation
from hitlchat.gate.schema import BadArguments

router = Router(tags=["policies"], by_alias=True)

Word = Literal["allow", "ask", "refuse"]


class MadeUpCall(Body):
    tool_name: Line
    arguments: Object = Field(default_factory=dict)
    caller_kind: Literal["chat", "studio", "api", "mcp"] = "chat"
    user: Annotated[Line | None, Field(description="A username; only administrators may name another person.")] = None


class SpokenRule(Shape):
    policy: str
    verdict: Word
    reason: str
    source: Literal["installation", "settings", "tool"]


class Simulation(Shape):
    verdict: Word
    reason: str
    rules: list[SpokenRule] = Field(description="Every rule that had something to say.")


@router.post("/simulate", response=Simulation)
def simulate(request: ApiRequest, body: MadeUpCall) -> Simulation:
    """Would this call be allowed, asked about or refused, and why? Nothing is recorded and nothing runs."""
    if body.caller_kind == "studio" and not may_author(request.auth.user):
        raise AuthorizationError(message="You may not write, test or publish tools.")
    person = _person(request, body.user)
    try:
        found = async_to_sync(simulation.simulate)(body.tool_name, body.arguments, person, body.caller_kind)
    except simulation.NoSuchTool as error:
        raise HttpError(404, str(error)) from error
    except BadArguments as error:
        raise HttpError(422, str(error)) from error
    rules = [SpokenRule.model_validate(each, from_attributes=True) for each in found.spoke]
    return Simulation(verdict=found.verdict, reason=found.reason, rules=rules)  # type: ignore[arg-type]


def _person(request: ApiRequest, name: str | None) -> User:
    if name is None or name == request.auth.user.get_username():
        return request.auth.user
    if not may_administer(request.auth.user):
        raise AuthorizationError(message="Only an administrator may simulate calls of other people.")
    found = User.objects.filter(username=name).first()
    if found is None:
        raise HttpError(404, f"There is nobody named {name!r} here.")
    return found
