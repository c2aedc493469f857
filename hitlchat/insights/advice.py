"""One sentence under each picture that follows from its figures, and where it can be acted upon."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.urls import reverse

from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.insights.figures import Answers, Figures, OfPerson, OfTool, Period

# Fewer yeses in a row say nothing of a tool.
ALWAYS_LEAST: Final = 20
# From here on a tool is mostly declined.
DECLINED_LEAST: Final = 5
DECLINED_SHARE: Final = 0.5
# From here on it is worth doing something about questions that expire; and they do so at weekends.
EXPIRED_LEAST: Final = 5
EXPIRED_SHARE: Final = 0.05
WEEKEND_SHARE: Final = 0.5
# One hurried yes can happen to anybody.
HURRIED_LEAST: Final = 3
# At this risk and above a call should not run unasked.
RISKY: Final = 3
# One person gives nearly all answers.
LONE_LEAST: Final = 20
LONE_SHARE: Final = 0.8
# A tool whose questions take this share of all, once asking takes so many minutes.
COST_MINUTES: Final = 60
COST_SHARE: Final = 0.5

NOTHING: Final = "Nothing here asks for a change."


@dataclass(frozen=True)
class Advice:
    """`fact` is what was found, `then` what to do about it; `tool` is the one it is about, and `place` where that is
    done: its own page (`edit`), its rules (`rules`), what it runs on (`grants`).
    """

    fact: str
    then: str = ""
    tool: OfTool | None = None
    place: str = ""


NONE: Final = Advice(NOTHING)


def of_days(figures: Figures) -> Advice:
    total = figures.total
    if total.expired < EXPIRED_LEAST or total.expired < EXPIRED_SHARE * total.asked:
        return NONE
    most = max(figures.tools, key=lambda tool: tool.tally.expired)
    weekends = figures.expired_at_weekends
    fact = f"{_questions(total.expired)} expired."
    if weekends >= WEEKEND_SHARE * total.expired:
        fact = f"{_questions(total.expired)} expired, {weekends} of them asked at a weekend."
    then = f"Most are of {most.name}: let more people decide about it, or give it a longer deadline."
    return Advice(fact, then, most, "rules")


def of_tools(tools: Sequence[OfTool]) -> Advice:
    """The tool with most questions of which something can be said."""
    for tool in tools:
        tally = tool.tally
        if tally.declined >= DECLINED_LEAST and tally.declined >= DECLINED_SHARE * tally.answered:
            fact = f"{tool.name} was declined {tally.declined} of {tally.answered} times."
            return Advice(fact, "Unpublish it, or have a policy refuse what nobody wants.", tool, "edit")
        if tally.answered >= ALWAYS_LEAST and tally.approved == tally.answered and not tool.edited:
            fact = f"{tool.name} was approved {tally.approved} of {tally.answered} times, as it was asked."
            return Advice(
                fact, "Consider a condition, so that it asks only where the answer could be no.", tool, "edit"
            )
    return NONE


def of_people(people: Sequence[OfPerson]) -> Advice:
    answered = sum(person.answered for person in people)
    if answered < LONE_LEAST or people[0].answered < LONE_SHARE * answered:
        return NONE
    fact = f"{people[0].name} gave {people[0].answered} of {answered} answers."
    return Advice(fact, "Let more people decide, so that not everything depends on one.")


def of_times(answers: Answers, tools: Sequence[OfTool]) -> Advice:
    if answers.hurried < HURRIED_LEAST:
        return NONE
    most = max(tools, key=lambda tool: tool.hurried)
    fact = f"{answers.hurried} yeses came faster than their cards can be read, {most.hurried} of them to {most.name}."
    return Advice(fact, "If its calls are harmless, ask less often about them; if not, take the time.", most, "edit")


def of_unasked(tools: Sequence[OfTool]) -> Advice:
    risky = [tool for tool in tools if tool.risk >= RISKY and tool.unasked]
    if not risky:
        return NONE
    most = max(risky, key=lambda tool: (tool.risk, tool.unasked))
    fact = f"{most.name} is of risk L{most.risk} and ran {_times(most.unasked)} without asking."
    return Advice(fact, "Consider REQUIRED, so that it asks every time.", most, "edit")


def of_cost(answers: Answers, tools: Sequence[OfTool]) -> Advice:
    minutes, asked = answers.spent / 60, sum(tool.tally.asked for tool in tools)
    most = max(tools, key=lambda tool: tool.tally.asked, default=None)
    if most is None or minutes < COST_MINUTES or most.tally.asked < COST_SHARE * asked:
        return NONE
    fact = f"{most.tally.asked} of {asked} questions are about {most.name}."
    return Advice(fact, "A grant covers several calls like each other with one yes.", most, "grants")


def _questions(count: int) -> str:
    return "1 question" if count == 1 else f"{count:,} questions"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


@dataclass(frozen=True)
class Told:
    """A piece of advice with its link, if there is one for this person."""

    advice: Advice
    words: str = ""
    address: str = ""


@dataclass(frozen=True)
class Links:
    user: User
    period: Period

    def history(self, **filters: str) -> str:
        """The calls behind a figure: all of them, or those made for this person."""
        own = {} if may_administer(self.user) else {"person": self.user.get_username()}
        return self._history(own | filters)

    def answers(self, **filters: str) -> str:
        """The calls behind a figure about answers: of everyone, or those that this person answered."""
        own = {} if may_administer(self.user) else {"decider": self.user.get_username()}
        return self._history(own | filters)

    def _history(self, filters: dict[str, str]) -> str:
        return f"{reverse('history')}?{urlencode({**filters, 'since': self.period.days[0].isoformat()})}"

    def to(self, advice: Advice) -> Told:
        tool = advice.tool
        # Of a tool that is gone, nothing can be set any more.
        if tool is None or not tool.source:
            return Told(advice)
        match advice.place, tool.source:
            case "grants", _:
                return Told(advice, "Your grants", reverse("grants"))
            case "rules", _ if may_administer(self.user):
                return Told(advice, f"Who decides about {tool.name}", reverse("tool-rules", args=[tool.name]))
            case "edit", "studio" if may_author(self.user):
                return Told(advice, f"Open {tool.name}", reverse("tool", args=[tool.name]))
            case "edit", "project" if may_author(self.user):
                return Told(advice, f"Open {tool.name}", reverse("project-tool", args=[tool.name]))
            case "edit", "upstream" if may_administer(self.user):
                return Told(advice, "Open the servers", reverse("servers:list"))
            case _:
                return Told(advice)
