"""Tokens: what each for /mcp may do; a person's own of all kinds, made, marked, listed and revoked."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.base.database import only
from hitlchat.base.problems import Forbidden, NotFound, required
from hitlchat.gate import stated, stopping, transition
from hitlchat.gate.actor import Actor, Caller
from hitlchat.mcp_server.models import McpToken, Submission, WithoutElicitation

REVOKED = gettext_noop("its token was revoked")


@dataclass(frozen=True)
class Access:
    """The rights of a request with a valid token. `tools`: None for all of them; `trusted`: its client is trusted."""

    token_id: int
    user_id: int
    user_name: str
    tools: frozenset[str] | None = None
    ceiling: int = 5
    without_elicitation: WithoutElicitation = WithoutElicitation.DENY
    token_name: str = ""
    trusted: bool = False

    @property
    def caller(self) -> Caller:
        return Caller("mcp", self.user_id, self.user_name, self.token_id)


def make_mcp(user: User, name: str = "", expires_at: datetime | None = None, **limits: Any) -> str:
    """Make a token with these limits (columns of McpToken). Raises: ValidationError, which names the limit."""
    with transaction.atomic():
        secret = Token.make(user, TokenKind.MCP, name, expires_at)
        row = McpToken(token=Token.objects.get(digest=hashed(secret)), **limits)
        row.full_clean()
        row.save(force_insert=True)
    return secret


def find(secret: str) -> Access | None:
    """Return what the MCP token with this text may do now; None if it is not valid."""
    token = only(_valid().filter(digest=hashed(secret)))
    if token is None:
        return None
    token.note_use()
    return _access(token)


def current_access(access: Access) -> Access | None:
    """Return what the token of a request that came a while ago may do by now; None if it is void."""
    token = only(_valid().filter(pk=access.token_id))
    return _access(token) if token is not None else None


class NoSuchToken(NotFound):
    """The person has no token with that id."""


class OnlyAdministrators(Forbidden):
    """Only an administrator says which MCP clients are trusted, whoever owns their tokens."""

    def __init__(self) -> None:
        super().__init__("Only an administrator can trust MCP clients.")


@dataclass(frozen=True)
class OwnToken:
    """One token, with its limits if it is for /mcp. For pages: the `count` of tools that it can use now; of those
    chosen, which it can use (`works`) and which not (`idle`).
    """

    token: Token
    limits: McpToken | None
    count: int = 0
    works: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()

    @property
    def has_expired(self) -> bool:
        return self.token.expires_at is not None and self.token.expires_at <= timezone.now()


def make(
    user: User,
    kind: TokenKind,
    actor: Actor,
    name: str = "",
    expires_at: datetime | None = None,
    *,
    trusted_by: Actor | None = None,
    **limits: Any,
) -> str:
    """Make a token for `actor`; only now its text is known. `limits`: columns of McpToken. `trusted_by`: the
    administrator who trusts its client. Raises: ValidationError, OnlyAdministrators, NoSuchToken (trust in another
    kind)
    """
    with transaction.atomic():
        if kind == TokenKind.MCP:
            secret = make_mcp(user, name, expires_at, **limits)
        else:
            secret = Token.make(user, kind, name, expires_at)
        made = Token.objects.select_related("mcp").get(digest=hashed(secret))
        _record("token.made", made, actor)
        if trusted_by is not None:
            trust(made.pk, trusted_by)
    return secret


def trust(token_id: int, actor: Actor, *, trusted: bool = True) -> Token:
    """Trust the client of this MCP token to report its user's answers to what is asked from now on. The end of trust
    counts also for what is open. Raises: NoSuchToken, OnlyAdministrators.
    """
    with transaction.atomic():
        rows = User.objects.select_for_update().filter(pk=actor.user_id or 0, is_superuser=True, is_active=True)
        if actor.means not in ("session", "console") or not rows.exists():
            raise OnlyAdministrators
        found = Token.objects.select_for_update(of=("self",)).select_related("user", "mcp")
        token = required(found.filter(pk=token_id, kind=TokenKind.MCP).first(), NoSuchToken)
        if token.attended != trusted:
            token.attended = trusted
            token.save(update_fields=["attended"])
            _record("token.marked_attended" if trusted else "token.unmarked_attended", token, actor)
    return token


def client_tokens() -> QuerySet[Token]:
    return Token.valid().filter(kind=TokenKind.MCP).order_by("-attended", "-pk")


def tokens_of(user: User) -> Iterator[OwnToken]:
    for token in Token.objects.filter(user=user).select_related("mcp").order_by("-pk"):
        yield OwnToken(token, _limits(token) if token.kind == TokenKind.MCP else None)


def token_of(user: User, token_id: int) -> OwnToken:
    """Return one token of this person. Raises: NoSuchToken"""
    found = next((each for each in tokens_of(user) if each.token.pk == token_id), None)
    return required(found, NoSuchToken)


def waiting_calls(token: Token) -> int:
    return Submission.objects.filter(token=token, call__status__in=stopping.NOT_STARTED).count()


def revoke(user: User, token_id: int, actor: Actor) -> int:
    """Revoke a token, and return how many of its calls are withdrawn. Its streams end. Raises: NoSuchToken"""
    with transaction.atomic():
        # A call that is just coming in with it comes before this, or fails.
        token = required(Token.objects.select_for_update().filter(user=user, pk=token_id).first(), NoSuchToken)
        rows = Submission.objects.filter(token=token, call__status__in=stopping.NOT_STARTED)
        calls = list(rows.values_list("call_id", flat=True))
        _record("token.revoked", token, actor)
        token.delete()
        for call_id in calls:
            stopping.withdraw_call(call_id, actor=actor, why=REVOKED)
    return len(calls)


def _valid() -> QuerySet[Token]:
    return Token.valid().select_related("mcp").filter(kind=TokenKind.MCP)


def _access(token: Token) -> Access:
    limits = _limits(token)
    return Access(
        token.pk,
        token.user_id,
        token.user.get_username(),
        None if limits.tools is None else frozenset(limits.tools),
        limits.ceiling,
        WithoutElicitation(limits.without_elicitation),
        token.name,
        token.attended,
    )


def _limits(token: Token) -> McpToken:
    return getattr(token, "mcp", None) or McpToken(token=token)


def _record(name: str, token: Token, actor: Actor) -> None:
    """Record everything about a token but its text, and what would give that away."""
    data = {
        "token": token.pk,
        "user": token.user.get_username(),
        "kind": token.kind,
        "name": token.name,
        "expires_at": token.expires_at and token.expires_at.isoformat(),
    }
    if token.kind == TokenKind.MCP:
        data["attended"] = token.attended
    if (limits := getattr(token, "mcp", None)) is not None:
        data |= {column: getattr(limits, column) for column in ("tools", "ceiling", "without_elicitation")}
    states = stated.states("token", token.pk)
    if name == "token.revoked":
        states[stated.STATES]["token"][str(token.pk)] = None
    transition.note(None, name, actor=actor, data=data | states)
