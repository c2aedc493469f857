"""One sentence under each picture that follows from its figures, and where it can be acted upon."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

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


@dataclass(frozen=True)
class Advice:
    """`fact` is what was found, `then` what to do about it; `tool` is the one it is about, and `place` where that is
    done: its own page (`edit`), its rules (`rules`), what it runs on (`grants`). `words` and `address` are the link
    to that place, if there is one for the person.
    """

    fact: str
    then: str = ""
    tool: OfTool | None = None
    place: str = ""
    words: str = ""
    address: str = ""


NONE: Final = Advice("")


def of_days(figures: Figures) -> Advice:
    total = figures.total
    if total.expired < EXPIRED_LEAST or total.expired < EXPIRED_SHARE * total.asked:
        return NONE
    most = max(figures.tools, key=lambda tool: tool.tally.expired)
    weekends = figures.expired_at_weekends
    fact = ngettext("{count} question expired.", "{count} questions expired.", total.expired)
    if weekends >= WEEKEND_SHARE * total.expired:
        fact = ngettext(
            "{count} question expired, {weekends} of them asked on a weekend.",
            "{count} questions expired, {weekends} of them asked on a weekend.",
            total.expired,
        )
    then = _("Most are of {tool}: let more people decide, or give it a longer deadline.")
    counts = {"count": _grouped(total.expired), "weekends": weekends}
    return Advice(fact.format(**counts), then.format(tool=most.name), most, "rules")


def of_tools(tools: Sequence[OfTool]) -> Advice:
    """The tool with most questions of which something can be said."""
    for tool in tools:
        tally = tool.tally
        if tally.declined >= DECLINED_LEAST and tally.declined >= DECLINED_SHARE * tally.answered:
            fact = _("{tool} was declined {declined} of {answered} times.")
            fact = fact.format(tool=tool.name, declined=tally.declined, answered=tally.answered)
            return Advice(fact, _("Unpublish it, or let a policy refuse unwanted calls."), tool, "edit")
        if tally.answered >= ALWAYS_LEAST and tally.approved == tally.answered and not tool.edited:
            fact = _("{tool} was approved {approved} of {answered} times without changes.")
            fact = fact.format(tool=tool.name, approved=tally.approved, answered=tally.answered)
            then = _("Consider a condition, to ask only when the answer could be no.")
            return Advice(fact, then, tool, "edit")
    return NONE


def of_people(people: Sequence[OfPerson]) -> Advice:
    answered = sum(person.answered for person in people)
    if answered < LONE_LEAST or people[0].answered < LONE_SHARE * answered:
        return NONE
    fact = _("{person} gave {given} of {answered} answers.")
    fact = fact.format(person=people[0].name, given=people[0].answered, answered=answered)
    return Advice(fact, _("Let more people decide, so that not everything depends on one person."))


def of_times(answers: Answers, tools: Sequence[OfTool]) -> Advice:
    if answers.hurried < HURRIED_LEAST:
        return NONE
    most = max(tools, key=lambda tool: tool.hurried)
    fact = _("{hurried} approvals were faster than their cards can be read, {most} of them for {tool}.")
    fact = fact.format(hurried=answers.hurried, most=most.hurried, tool=most.name)
    then = _("If these calls are harmless, ask less often; if not, take more time.")
    return Advice(fact, then, most, "edit")


def of_unasked(tools: Sequence[OfTool]) -> Advice:
    regretted = max(tools, key=lambda tool: tool.should_ask, default=None)
    if regretted is not None and regretted.should_ask:
        fact = ngettext(
            "Looking back, {count} call of {tool} should have been asked about, and {fine} were fine.",
            "Looking back, {count} calls of {tool} should have been asked about, and {fine} were fine.",
            regretted.should_ask,
        ).format(tool=regretted.name, count=regretted.should_ask, fine=regretted.fine)
        return Advice(fact, _("Consider REQUIRED, or a condition that asks about such calls."), regretted, "edit")
    risky = [tool for tool in tools if tool.risk >= RISKY and tool.unasked]
    if not risky:
        return NONE
    most = max(risky, key=lambda tool: (tool.risk, tool.unasked))
    fact = ngettext(
        "{tool} is of risk L{level} and ran once without asking.",
        "{tool} is of risk L{level} and ran {count} times without asking.",
        most.unasked,
    ).format(tool=most.name, level=most.risk, count=_grouped(most.unasked))
    return Advice(fact, _("Consider REQUIRED to ask every time."), most, "edit")


def of_cost(answers: Answers, tools: Sequence[OfTool]) -> Advice:
    minutes, total = answers.spent / 60, sum(tool.tally.asked for tool in tools)
    most = max(tools, key=lambda tool: tool.tally.asked, default=None)
    if most is None or minutes < COST_MINUTES or most.tally.asked < COST_SHARE * total:
        return NONE
    fact = _("{count} of {asked} questions are about {tool}.")
    fact = fact.format(count=most.tally.asked, asked=total, tool=most.name)
    return Advice(fact, _("A grant covers several similar calls with one approval."), most, "grants")


def _grouped(count: int) -> str:
    return number_format(count, force_grouping=True)


@dataclass(frozen=True)
class Links:
    user: User
    period: Period

    def history(self, own: str = "person", **filters: str) -> str:
        """Return the URL of the calls behind a figure: to administrators all, to others those where `own` is them."""
        only_own = {} if may_administer(self.user) else {own: self.user.get_username()}
        query = urlencode({**only_own, **filters, "since": self.period.days[0].isoformat()})
        return f"{reverse('history')}?{query}"

    def answers(self, **filters: str) -> str:
        """Return the URL of the calls behind a figure about answers, which others see of the calls they answered."""
        return self.history("decider", **filters)

    def to(self, advice: Advice) -> Advice:
        """Return a piece of advice with its link."""
        tool = advice.tool
        # Of a tool that is gone, nothing can be set any more.
        if tool is None or not tool.source:
            return advice
        opens = _("Open {tool}").format(tool=tool.name)
        match advice.place, tool.source:
            case "grants", _:
                words, address = _("Your grants"), reverse("grants")
            case "rules", _ if may_administer(self.user):
                words = _("Who decides calls to {tool}").format(tool=tool.name)
                address = reverse("tool-rules", args=[tool.name])
            case "edit", "studio" if may_author(self.user):
                words, address = opens, reverse("tool", args=[tool.name])
            case "edit", "project" if may_author(self.user):
                words, address = opens, reverse("project-tool", args=[tool.name])
            case "edit", "upstream" if may_administer(self.user):
                words, address = _("Open the servers"), reverse("servers:list")
            case _:
                return advice
        return replace(advice, words=words, address=address)
