"""The policy lab: drafts of rules are tried on recorded calls, kept, compared, and published. For administrators."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from hitlchat.accounts.access import HtmxRequest, administrators_only
from hitlchat.approvals import earned
from hitlchat.base import canonical
from hitlchat.base.ids import uuid_of
from hitlchat.base.problems import Invalid, Problem
from hitlchat.gate import draft as drafts
from hitlchat.gate import earned as gate_earned
from hitlchat.gate import lab, oversight, replay, spec, who
from hitlchat.gate.actor import actor_of
from hitlchat.gate.draft import BadDraft
from hitlchat.gate.lab import Step
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import HitlMode, PolicyDraft, Tool, ToolCall
from hitlchat.gate.oversight import Rules
from hitlchat.gate.tools import listed

# Of the declined calls that would have run, and of those that two drafts differ on.
MOST_CALLS: Final = 20
GONE: Final = {"invalid_choice": _("There is no such tool.")}
BOUNDS: Final[dict[str, Any]] = {"most": replay.MOST_AT_ONCE, "seconds": replay.MOST_SECONDS}
# Another form of the page has a field of the same name.
KEEP: Final = "keep_%s"
VERDICTS: Final = {"allow": _("runs"), "ask": _("asks"), "refuse": _("refused")}

_administrators = administrators_only("Only administrators replay recorded calls.")


class DraftForm(forms.Form):
    """A tool under another mode or condition, which begins with those that it has; or a whole draft as JSON."""

    tool = forms.ModelChoiceField(
        Tool.objects.none(), label=_("Tool"), to_field_name="name", empty_label=None, error_messages=GONE
    )
    mode = forms.ChoiceField(label=_("Approval"), choices=[(value, _(label)) for value, label in HitlMode.choices])
    condition = forms.CharField(label=_("Condition"), required=False, widget=forms.Textarea(attrs={"rows": 3}))
    days = forms.IntegerField(label=_("Days"), min_value=1, max_value=replay.MOST_DAYS, initial=replay.USUAL_DAYS)
    draft = forms.CharField(label=_("The whole draft as JSON"), required=False, widget=forms.Textarea)

    def __init__(self, data: QueryDict | None = None, *, chosen: str = "", opened: drafts.Given | None = None) -> None:
        tools = listed().order_by("name")
        first = tools.filter(name=chosen).first() or tools.first()
        begin = {"tool": first.name, "mode": first.hitl_mode, "condition": first.condition} if first else {}
        super().__init__(data, initial=begin | (_opened(opened) if opened else {}))
        offered = self.fields["tool"]
        assert isinstance(offered, forms.ModelChoiceField)
        offered.queryset = tools
        # What was replayed, as it would be kept.
        self.given: Any = None

    def replayed(self) -> replay.Replayed | None:
        """None when there is no outcome; the form says why."""
        sent = self.cleaned_data
        is_whole = bool(sent["draft"].strip())
        try:
            settings = {"hitlMode": sent["mode"], "condition": sent["condition"]}
            self.given = canonical.loads(sent["draft"]) if is_whole else {"tools": {sent["tool"].name: settings}}
            draft = drafts.read(self.given)
            tools = draft.tools.keys() if draft.rules is None else None
            return replay.replay(draft, sent["days"], tools=tools, **BOUNDS)
        except (BadDraft, replay.TooSlow, canonical.NotJson) as error:
            # Of a draft of one tool, its condition alone can be wrong.
            words = error.errors.values() if isinstance(error, BadDraft) and not is_whole else [str(error)]
            for each in words:
                self.add_error("draft" if is_whole else "condition", each)
        return None


class KeepForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=lab.LONGEST["name"])
    purpose = forms.CharField(label=_("What it is for"), max_length=lab.LONGEST["purpose"], required=False)
    draft = forms.CharField(widget=forms.HiddenInput, strip=False)


class CompareForm(forms.Form):
    other = forms.ModelChoiceField(
        PolicyDraft.objects.none(), label=_("With"), required=False, empty_label=_("The rules in force")
    )
    days = forms.IntegerField(label=_("Days"), min_value=1, max_value=replay.MOST_DAYS, initial=replay.USUAL_DAYS)

    def __init__(self, row: PolicyDraft, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self.row, other = row, self.fields["other"]
        assert isinstance(other, forms.ModelChoiceField)
        other.queryset = PolicyDraft.objects.exclude(pk=row.pk)

    def compared(self) -> replay.Compared | None:
        """None when there is no outcome; the form says why."""
        other, days = self.cleaned_data["other"], self.cleaned_data["days"]
        try:
            one, second = (drafts.read(each.body if each else {}) for each in (self.row, other))
            return replay.compare(one, second, days, **BOUNDS)
        except Problem as error:
            self.add_error(None, str(error))
        return None


class PublishForm(forms.Form):
    why = forms.CharField(label=_("Why"), max_length=lab.LONGEST["why"], help_text=_("It goes on record."))
    # On the page only once it is asked for, somewhere below: then it gets the focus.
    confirm_lowering = forms.BooleanField(
        required=False,
        label=_("I understand that fewer calls will be reviewed, or by other people"),
        widget=forms.CheckboxInput({"autofocus": True}),
    )
    # What a person has not confirmed yet.
    weaker: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What a draft has for one field of a tool, and what is in force; `code`: what is in words above."""

    tool: str
    words: str
    now: str
    then: str
    code: str = ""


@_administrators.form
def page(request: HtmxRequest) -> HttpResponse:
    """Show what a draft would have made of the recorded calls of its tools."""
    is_asked = request.method == "POST"
    pk = uuid_of(request.GET.get("draft", ""))
    opened = drafts.parse(get_object_or_404(PolicyDraft, pk=pk).body) if pk else None
    form = DraftForm(request.POST if is_asked else None, chosen=request.GET.get("tool", ""), opened=opened)
    found = form.replayed() if form.is_valid() else None
    keeping = KeepForm(initial={"draft": canonical.dumps(form.given)}, auto_id=KEEP) if found else None
    context = {"form": form, "keeping": keeping, **_outcome(found)}
    # htmx shows no answer with another status.
    is_part = request.htmx and is_asked
    return _lab(request, context, status=422 if form.errors and not is_part else 200, is_part=bool(is_part))


@_administrators.posts
def keep(request: HttpRequest) -> HttpResponse:
    form, opened = KeepForm(request.POST, auto_id=KEEP), None
    if form.is_valid():
        given = form.cleaned_data
        try:
            opened = drafts.parse(canonical.loads(given["draft"]))
            row = lab.keep(opened.as_json, actor_of(request), name=given["name"], purpose=given["purpose"])
        except (Problem, canonical.NotJson) as error:
            _refuse(form, error)
        else:
            messages.success(request, gettext("Kept. Nothing of it is in force yet."))
            return redirect("policy-draft", row.pk)
    return _lab(request, {"form": DraftForm(opened=opened), "keeping": form}, status=422)


@_administrators.reads
def draft(request: HttpRequest, draft_id: UUID) -> HttpResponse:
    return _page(request, get_object_or_404(_rows(), pk=draft_id), PublishForm())


@_administrators.posts
def compare(request: HtmxRequest, draft_id: UUID) -> HttpResponse:
    """Show the draft beside another one, or beside the rules in force, over the same calls."""
    row = get_object_or_404(_rows(), pk=draft_id)
    form = CompareForm(row, request.POST)
    found = form.compared() if form.is_valid() else None
    context = {"comparing": form, "compared": found, **_outcome(found.one if found else None)}
    if found:
        rows = _differing(found)
        context |= {"differing": rows, "more_differing": found.differing - len(rows)}
    if request.htmx:
        return render(request, "policies/_compared.html", {"draft": row, **context})
    return _page(request, row, PublishForm(), status=200 if found else 422, **context)


@_administrators.posts
def publish(request: HttpRequest, draft_id: UUID) -> HttpResponse:
    row, form = get_object_or_404(_rows(), pk=draft_id), PublishForm(request.POST)
    if not form.is_valid():
        return _page(request, row, form, status=422)
    given = form.cleaned_data
    try:
        lab.publish(row.pk, actor_of(request), given["why"], confirmed=given["confirm_lowering"])
    except NotConfirmed:
        form.weaker = tuple(lab.loosened(row))
        return _page(request, row, form, status=422)
    except Problem as error:
        _refuse(form, error)
        return _page(request, row, form, status=error.status)
    messages.success(request, gettext("Published. It is in force from now on."))
    return redirect("policy-draft", row.pk)


@_administrators.posts
def delete(request: HttpRequest, draft_id: UUID) -> HttpResponse:
    row = get_object_or_404(PolicyDraft, pk=draft_id)
    lab.remove(row.pk, actor_of(request))
    messages.success(request, gettext("The draft was deleted."))
    return redirect("policy-lab")


def _rows() -> QuerySet[PolicyDraft]:
    return PolicyDraft.objects.select_related("author", "publisher")


def _refuse(form: forms.Form, error: Exception) -> None:
    """Show an error at its field, where the form has that; what is in a draft is named."""
    for field, words in error.errors.items() if isinstance(error, Invalid) else [("", str(error))]:
        if field in form.fields and field != "draft":
            form.add_error(field, words)
        else:
            form.add_error(None, f"{field}: {words}" if "." in field else words)


def _opened(given: drafts.Given) -> dict[str, str]:
    """Return what a form begins with to have this draft."""
    (name, only), *others = [*given.tools.items(), ("", drafts.ToolGiven())]
    if (
        given.policies is not None
        or len(others) > 1
        or only.rules
        or only.earned
        or len(only.settings) < len(drafts.SETTINGS)
    ):
        return {"draft": canonical.pretty(given.as_json, indent=2)}
    return {"tool": name, "mode": only.settings["hitl_mode"], "condition": only.settings["condition"]}


def _lab(request: HttpRequest, context: dict[str, Any], *, status: int, is_part: bool = False) -> HttpResponse:
    if is_part:
        return render(request, "policies/_lab.html", context)
    return render(request, "policies/lab.html", {"section": "policies", "drafts": _rows(), **context}, status=status)


def _outcome(found: replay.Replayed | None) -> dict[str, Any]:
    ids = found.would_have_run_though_declined[:MOST_CALLS] if found else []
    return {
        "found": found,
        "declined": _calls(ids),
        "more_declined": found.declined_that_would_have_run - len(ids) if found else 0,
    }


def _calls(ids: Iterable[UUID]) -> QuerySet[ToolCall]:
    rows = ToolCall.objects.filter(pk__in=list(ids)).select_related("approval", "caller")
    return rows.order_by("-created_at", "-id")


def _differing(found: replay.Compared) -> list[tuple[ToolCall, str, str]]:
    """Return calls that two drafts differ on, with what each says."""
    named = {each.call: each for each in found.differences[:MOST_CALLS]}
    both = ((call, named[call.pk]) for call in _calls(named))
    return [(call, str(VERDICTS[each.one]), str(VERDICTS[each.other])) for call, each in both]


def _page(
    request: HttpRequest, row: PolicyDraft, form: PublishForm, *, status: int = 200, **context: Any
) -> HttpResponse:
    given = drafts.parse(row.body)
    shown = {
        "section": "policies",
        "draft": row,
        "settings": list(_settings(given)),
        "policies": None if given.policies is None else canonical.pretty(given.policies, indent=2),
        "line": None if given.policies is None else lab.settings_line(given.policies),
        "outdated": {} if row.published_at else lab.outdated(row),
        "evidence": [] if row.published_at else list(_evidence(given)),
        "form": form,
        "comparing": CompareForm(row),
    }
    return render(request, "policies/draft.html", shown | context, status=status)


def _settings(given: drafts.Given) -> Iterator[Setting]:
    tools = {tool.name: tool for tool in Tool.objects.filter(name__in=given.tools)}
    for name, wanted in given.tools.items():
        tool = tools.get(name)
        for column, value in wanted.settings.items():
            now = getattr(tool, column) if tool else ""
            yield Setting(name, gettext(spec.WORDS[column]), *(_shown(column, each) for each in (now, value)))
        if wanted.rules is not None:
            now = _who(oversight.of(tool)) if tool else ""
            yield Setting(name, gettext("Who decides"), now, _wanted(name, wanted.rules))
        if wanted.earned is not None:
            yield _earned(name, wanted.earned)


def _earned(name: str, rule: drafts.EarnedGiven) -> Setting:
    field, words = gettext("Earned rule"), earned.in_words(rule.condition)
    if not words:
        return Setting(name, field, "", gate_earned.sentence(rule))
    sentence = gettext("Calls run without asking if {words}: at most {day} times a day and {one} for one person.")
    then = sentence.format(words="; ".join(words), day=rule.per_day, one=rule.per_person)
    return Setting(name, field, "", then, rule.condition)


def _evidence(given: drafts.Given) -> Iterator[dict[str, Any]]:
    """Yield what the record says now of the earned rules of a draft."""
    rules = {name: wanted.earned for name, wanted in given.tools.items() if wanted.earned is not None}
    for tool in Tool.objects.filter(name__in=rules):
        condition = rules[tool.name].condition
        found = earned.evidence(gate_earned.evidence_for(tool, condition))
        yield {"tool": tool.name, "words": earned.in_words(condition), **found}


def _wanted(name: str, given: drafts.RulesGiven) -> str:
    try:
        return _who(lab.rules_of(name, given))
    except BadDraft as error:
        return str(error)


def _shown(column: str, value: str) -> str:
    if column == "hitl_mode" and value in HitlMode.values:
        return gettext(HitlMode(value).label)
    return value


def _who(rules: Rules) -> str:
    words = who.words(rules.as_json, who.REQUESTER)
    return words[:1].upper() + words[1:]
