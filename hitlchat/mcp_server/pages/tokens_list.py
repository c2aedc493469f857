"""A person's tokens as their page lists them: with what each of them can do now, which may be less than was chosen."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from hitlchat.accounts.models import Token
from hitlchat.mcp_server import personal
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.models import McpToken
from hitlchat.mcp_server.tokens import Access


@dataclass(frozen=True)
class Listed:
    """`count`: of the tools that it can use now; `works` and `idle`: those chosen that it can use, and cannot."""

    token: Token
    limits: McpToken | None
    has_expired: bool
    count: int = 0
    works: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


def listed(user: User) -> list[Listed]:
    """The newest first."""
    risks = dict(visible(Access(0, user.pk, user.get_username())).values_list("name", "risk_level"))
    return [_listed(each, risks) for each in personal.held(user)]


def _listed(held: personal.Held, risks: dict[str, int]) -> Listed:
    limits = held.limits
    if limits is None:
        return Listed(held.token, None, held.has_expired)
    able = {name for name, risk in risks.items() if risk <= limits.ceiling}
    if limits.tools is None:
        return Listed(held.token, limits, held.has_expired, len(able))
    works = tuple(name for name in limits.tools if name in able)
    idle = tuple(name for name in limits.tools if name not in able)
    return Listed(held.token, limits, held.has_expired, len(works), works, idle)
