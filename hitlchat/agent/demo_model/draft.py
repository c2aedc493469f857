"""The arguments of one call while they are being found."""

from dataclasses import dataclass, field
from typing import Any

from hitlchat.agent.demo_model.facts import Fact, find
from hitlchat.agent.demo_model.shapes import MISFIT, Param, fit
from hitlchat.agent.demo_model.words import Token, canonical


@dataclass
class Draft:
    """What is known so far of a call that `text` asks for. Each place in the text gives at most one argument.

    `named`: the user wrote the tool's name. `complete`: and all of the arguments, so that nothing is to be asked for.
    """

    text: str
    params: list[Param]
    tool_words: frozenset[str]
    named: bool = False
    complete: bool = False
    guessed: str = ""  # the parameter that took the rest of the sentence
    in_order: list[Fact] = field(default_factory=list)  # quotes that went to a parameter by their order alone
    values: dict[str, Any] = field(default_factory=dict)
    _claimed: list[tuple[int, int]] = field(default_factory=list)

    def open(self) -> list[Param]:
        """The parameters that have no value yet."""
        return [param for param in self.params if param.name not in self.values]

    def missing(self) -> list[Param]:
        return [param for param in self.open() if param.required and not self.complete]

    def is_free(self, start: int, end: int) -> bool:
        return all(end <= first or start >= last for first, last in self._claimed)

    def claim(self, start: int, end: int) -> None:
        self._claimed.append((start, end))

    def facts(self) -> list[Fact]:
        return [fact for fact in find(self.text) if self.is_free(fact.start, fact.end)]

    def is_about_another(self, param: Param, word: Token) -> bool:
        """Whether `word` names a parameter other than `param`."""
        stem = canonical(word.text)
        return any(stem in other.own_words for other in self.params if other != param) and stem not in param.own_words

    def take(self, param: Param, text: str, start: int, end: int) -> bool:
        """Give `param` the value that `text` stands for, if it fits and the place is free."""
        value = fit(param, text)
        if value is MISFIT or not self.is_free(start, end):
            return False
        self.values[param.name] = value
        self.claim(start, end)
        return True
