"""Insights: what was asked, what people answered, what it cost them. Everyone sees their own; administrators, all."""

from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext

from hitlchat.accounts.access import administrators_only, person, signed_in
from hitlchat.accounts.roles import may_administer
from hitlchat.agent import usage
from hitlchat.base.moments import about
from hitlchat.gate import attention, second
from hitlchat.gate.attention import IDLE_SECONDS
from hitlchat.gate.history.finding import UNASKED
from hitlchat.gate.models import Decision
from hitlchat.insights import advice, drawing
from hitlchat.insights.advice import Links
from hitlchat.insights.figures import LATEST_UNASKED, PERIODS, Figures, Period, count
from hitlchat.insights.report import report
from hitlchat.record.proofs import spaced

MOST_HURRIED = 5
MOST_OWN = 10


@signed_in.reads
def page(request: HttpRequest) -> HttpResponse:
    user, period = person(request), Period.of(request.GET.get("period", ""))
    everyone = may_administer(user)
    figures = count(period, None if everyone else user)
    own = _decisions(period).filter(person=user)
    hurried = (_decisions(period) if everyone else own).filter(hurried=True)
    links = Links(user, period)
    shown = {
        **_common(figures),
        "everyone": everyone,
        "idle": about(IDLE_SECONDS),
        "all_hurried": links.answers(hurried="1"),
        "all_unasked": links.history(outcome=UNASKED),
        "used": usage.of_people(period.since, None if everyone else user),
        "day_limit": settings.MODEL_PERSON_TOKENS,
        "own": _listed(own, MOST_OWN),
        "hurried": _listed(hurried, MOST_HURRIED),
        "weighed": sorted(second.counted(period.since, None if everyone else user).items()),
        **_pictures(figures, links, everyone=everyone),
    }
    return render(request, "insights/page.html", shown)


@administrators_only("Only administrators may see the oversight report.").reads
def oversight(request: HttpRequest) -> HttpResponse:
    """Show the report of a period to print, or send it as JSON."""
    found = report(Period.of(request.GET.get("period", "")))
    if request.GET.get("format") == "json":
        return JsonResponse(found.as_json, headers={"Content-Disposition": 'attachment; filename="oversight.json"'})
    shown = {
        **_common(found.figures),
        "report": found,
        "weighed": sorted(found.weighed.items()),
        "batches": {each.number: (each.sealed_at, spaced(each.hash)) for each in found.sealed.batches},
        "key": spaced(found.sealed.key),
    }
    return render(request, "insights/report.html", shown)


def _common(figures: Figures) -> dict[str, Any]:
    """Return the context of both pages."""
    hours, minutes = divmod(round(figures.answers.spent / 60), 60)
    median = figures.answers.median
    return {
        "section": "insights",
        "figures": figures,
        "period": figures.period,
        "periods": {key: words for key, (_, words) in PERIODS.items()},
        "cost": f"{hours} h {minutes} min" if hours else f"{minutes} min",
        # Counted in whole seconds, of which the first is 0.
        "median": None if median is None else about(median) if median else gettext("under 1 s"),
        "latest": LATEST_UNASKED,
        "zone": timezone.get_current_timezone_name(),
    }


def _pictures(figures: Figures, links: Links, *, everyone: bool) -> dict[str, Any]:
    tools, people, answers = figures.tools, figures.people, figures.answers
    by_tool = drawing.by_tool(tools, lambda name: links.history(tool=name))
    by_person = drawing.by_person(people, lambda name: links.answers(decider=name))
    unasked = drawing.unasked(tools, lambda name: links.history(tool=name, outcome=UNASKED))
    found = {
        "days": (drawing.days(figures), links.to(advice.of_days(figures))),
        "tools": (by_tool, links.to(advice.of_tools(tools))),
        "people": (by_person, links.to(advice.of_people(people))) if everyone else None,
        "times": (drawing.times(answers), links.to(advice.of_times(answers, tools))),
        "unasked": (unasked, links.to(advice.of_unasked(tools))),
        "spent": (None, links.to(advice.of_cost(answers, tools))),
    }
    return found | {"advises": any(each is not None and each[1] != advice.NONE for each in found.values())}


def _decisions(period: Period) -> QuerySet[Decision]:
    rows = Decision.objects.filter(decided_at__gte=period.since).select_related("approval__call", "person")
    # Arguments and results may be long, and are not shown.
    unread = ("approval__call__arguments", "approval__call__result", "approval__call__output")
    return rows.defer(*unread, "edited_arguments").order_by("-decided_at")


def _listed(rows: QuerySet[Decision], most: int) -> list[tuple[Decision, str]]:
    return [(each, attention.words(each, each.approval.disclosure)) for each in rows[:most]]


urlpatterns = [
    path("", page, name="insights"),
    path("report", oversight, name="oversight-report"),
]
