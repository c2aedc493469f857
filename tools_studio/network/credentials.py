"""`auth=`: what the server adds to a request so that the tool never holds it, and hides again in what comes back."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from hitlchat.secrets.masking import Mask
from tools_studio.network.headers import TOKEN, VALUE, require_free
from tools_studio.network.policy import FetchPolicy, Resolver

NAME_CHARS = 100
EXPECTED = (
    'auth must be the name of a secret, {"basic": name}, {"header": header, "secret": name}'
    ' or {"query": parameter, "secret": name}'
)


@dataclass(frozen=True)
class Credential:
    """What to add, and what takes it out again of all that comes back."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    mask: Mask = field(default_factory=lambda: Mask(()), repr=False)


def credential_of(policy: FetchPolicy, auth: object) -> Credential | None:
    """What `auth` asks for. ValueError: it cannot be had. PermissionError: not with this policy."""
    if auth is None:
        return None
    if policy.mode != "allowlist":
        raise PermissionError('auth goes only to hosts that the tool names: the mode of its fetch must be "allowlist"')
    match auth:
        case str() as name:
            return _in_header("authorization", "Bearer ", _value(policy.secret, name))
        case {"basic": str() as name, **others} if not others:
            return _basic(_value(policy.secret, name), name)
        case {"header": str() as header, "secret": str() as name, **others} if not others:
            return _in_header(_header(header), "", _value(policy.secret, name))
        case {"query": str() as parameter, "secret": str() as name, **others} if not others:
            return _in_query(parameter, _value(policy.secret, name))
    raise ValueError(EXPECTED)


def _value(secret: Resolver, name: str) -> str:
    if not 1 <= len(name) <= NAME_CHARS:
        raise ValueError(EXPECTED)
    try:
        value = secret(name)
    except (LookupError, ValueError) as error:
        raise ValueError(f"auth: {error.args[0] if error.args else name}") from None
    if not value:
        raise ValueError(f"auth: {name} is empty")
    if not VALUE.fullmatch(value):
        raise ValueError(f"auth: {name} holds characters that a request cannot carry")
    return value


def _in_header(name: str, prefix: str, value: str) -> Credential:
    return Credential(headers={name: f"{prefix}{value}"}, mask=Mask([value]))


def _basic(value: str, name: str) -> Credential:
    _, colon, password = value.partition(":")
    if not colon:
        raise ValueError(f"auth: {name} must be user:password")
    packed = base64.b64encode(value.encode()).decode("ascii")
    return Credential(headers={"authorization": f"Basic {packed}"}, mask=Mask([value, password]))


def _in_query(parameter: str, value: str) -> Credential:
    if not 1 <= len(parameter) <= NAME_CHARS:
        raise ValueError(EXPECTED)
    return Credential(query={parameter: value}, mask=Mask([value]))


def _header(name: str) -> str:
    if not TOKEN.fullmatch(name):
        raise ValueError(EXPECTED)
    require_free(name)
    return name.lower()
