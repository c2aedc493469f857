"""What the connections are told of the program around them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Protocol

Address = IPv4Address | IPv6Address


class AddressRules(Protocol):
    """Which addresses are anyone's, one's own, or nobody's to ask."""

    def is_public(self, address: Address) -> bool: ...

    def is_local(self, address: Address) -> bool: ...

    def is_metadata_name(self, host: str) -> bool: ...


class Masking(Protocol):
    """Hides the values that it was made for."""

    def text(self, text: str) -> str: ...

    def value(self, value: Any) -> Any: ...


@dataclass(frozen=True)
class Surroundings:
    """`allow_stdio`: whether programs may be started at all. `version`: ours, as servers are told. `is_ours`: whether
    these experimental capabilities of a server say that it is this very installation."""

    rules: AddressRules
    mask: Callable[[Iterable[str]], Masking]
    allow_stdio: bool = False
    version: str = "0"
    is_ours: Callable[[dict[str, dict[str, Any]] | None], bool] = lambda _: False
