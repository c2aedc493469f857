"""A rule about how much a call is about."""

import re
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from hitlchat.gate.policies.bundle import BECAUSE, DOES, Asked, Bundled
from hitlchat.gate.policies.verdicts import VERDICTS, Allow, Ask, Outcome, Said, Unusable
from hitlchat.gate.policies.views import ToolView

Word = Annotated[str, StringConstraints(pattern=r"^[^.\s]{1,64}(\.[^.\s]{1,64}){0,9}$")]

PLAIN_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


def _number(value: Any) -> Decimal | None:
    """Of a JSON number, and of a text that is nothing but a plain decimal number; else None."""
    if type(value) in (int, float):
        return Decimal(str(value)) if isfinite(value) else None
    return Decimal(value) if isinstance(value, str) and PLAIN_NUMBER.fullmatch(value) else None


class AmountThreshold(Bundled):
    """Asks about, or refuses, what is more than a limit, whatever its sign; asks when there is no number."""

    word = "amount_threshold"
    argument: Word
    limit: Annotated[float, Field(ge=0, le=10**15)]
    over: Literal["ask", "refuse"] = "ask"

    @property
    def _limit(self) -> str:
        return f"{int(self.limit):,}" if self.limit.is_integer() else f"{self.limit:,}"

    @property
    def strongest(self) -> Outcome:
        return self.over

    @property
    def sentence(self) -> str:
        does = DOES[self.over].lower()
        return (
            f"Up to {self._limit} in “{self.argument}”, do not ask about {self.which}; {does} more; ask when it is no"
            " number."
        )

    @property
    def may_fail(self) -> bool:
        """To refuse what is over the limit, it has to know how much it is."""
        return self.over == "refuse"

    def says(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({"allow", "ask", self.over})

    def judge(self, asked: Asked) -> Said:
        found: Any = asked.call.arguments
        for word in self.argument.split("."):
            found = found.get(word) if isinstance(found, dict) else None
        if (amount := _number(found)) is None:
            why = f"Asked because “{self.argument}” is not a number that could be compared with {self._limit}."
            return Unusable(why) if self.may_fail else Ask(why)
        if abs(amount) > Decimal(str(self.limit)):
            return VERDICTS[self.over](f"{BECAUSE[self.over]} because “{self.argument}” is over {self._limit}.")
        return Allow(f"Not asked because “{self.argument}” is not over {self._limit}.")
