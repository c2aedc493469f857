"""Pages on which something is set up with a form: a list, a page for each and for a new one, and one to remove it."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, ClassVar, Final, Generic, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hitlchat.accounts.access import View, only
from hitlchat.accounts.roles import may_administer
from hitlchat.base.problems import Conflict, Invalid
from hitlchat.gate.actor import Actor, actor_of
from hitlchat.gate.loosening import NotConfirmed

R = TypeVar("R", bound=Model)

# Parts of a draft that one field chooses together, as `endpoint/model`.
ROUTE: Final = ("endpoint", "model")


class ChoosingForm(forms.Form):
    """A form whose choices are known only when it is shown."""

    def choose_from(self, name: str, choices: list[Any]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def chosen_route(self) -> dict[str, Any]:
        """Return the chosen endpoint and model; without an endpoint, where none is chosen."""
        endpoint, _slash, model = self.cleaned_data.get("route", "").partition("/")
        return {"endpoint": endpoint or None, "model": model}


class DraftForm(ChoosingForm):
    """A draft as it is typed. `row`: what is changed, None for something new."""

    # The module that checks drafts of one kind, and stores them on record.
    flows: ModuleType
    # What would ask less than before, until somebody confirms that.
    weaker: tuple[str, ...] = ()

    def __init__(self, row: Any, data: Any, before: Any, **initial: Any) -> None:
        """`before`: the draft of the row, or an empty one; `initial`: what a field shows of it otherwise."""
        parts = {name: getattr(before, name) for name in self.base_fields if hasattr(before, name)}
        super().__init__(data, initial=parts | initial)
        self.row = row

    def draft(self) -> Any:
        """Return what is typed; of a form that is not valid, with what a field refused left out."""
        raise NotImplementedError

    def problems(self) -> Mapping[str, str]:
        """Return all that is wrong with the draft, a sentence for each of its parts."""
        found: Mapping[str, str] = self.flows.problems(self.draft())
        return found

    def clean(self) -> dict[str, Any]:
        # All that is wrong at once.
        self.report(self.problems())
        return self.cleaned_data

    def report(self, problems: Mapping[str, str]) -> None:
        """Show what is wrong at the fields, but for what a field has said itself."""
        for name, words in problems.items():
            field = name if name in self.fields else "route" if name in ROUTE else None
            if field not in self.errors:
                self.add_error(field, words)

    def given(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name, value in self.cleaned_data.items() if name in names}

    def lines(self, name: str) -> tuple[str, ...]:
        return tuple(filter(None, map(str.strip, self.cleaned_data.get(name, "").splitlines())))


class DraftPages(Generic[R]):
    """The pages of one kind of thing, whose rows are named in their addresses. `namespace`: of these addresses."""

    rows: Callable[[], QuerySet[Any]]
    namespace: ClassVar[str]
    # The folder of list.html, edit.html and remove.html.
    templates: ClassVar[str]
    section: ClassVar[str] = "servers"
    # Of a row and what is posted.
    form: ClassVar[type[Any]]
    # Who may see and change it, and what others read.
    may: ClassVar[Callable[[User], bool]] = may_administer
    words: ClassVar[str]
    # The page that follows on one that was saved.
    saved: ClassVar[str] = "list"
    name_column: ClassVar[str] = "name"

    def name_of(self, row: R) -> str:
        return str(row)

    def about_all(self) -> dict[str, Any]:
        return {"rows": self.rows()}

    def about(self, row: R | None) -> dict[str, Any]:  # noqa: ARG002 - of those that have more to show
        """Return what the page of one shows beside its form."""
        return {}

    def store(self, form: DraftForm, actor: Actor) -> Any:
        """Return the row as it is stored. Raises: Invalid."""
        if form.row is None:
            return form.flows.create(form.draft(), actor)
        return form.flows.change(form.row.pk, form.draft(), actor)

    def save(self, form: DraftForm, actor: Actor) -> Any:
        """Return the row; None if it cannot be so, which the form says."""
        try:
            return self.store(form, actor)
        except Invalid as error:
            form.report(error.errors)
        except NotConfirmed as error:
            form.weaker = error.weaker
        return None

    def delete(self, row: R, actor: Actor) -> None:
        """Raises: Conflict, if it is in use."""
        self.form.flows.remove(row.pk, actor)

    @property
    def included(self) -> tuple[list[URLPattern], str]:
        """Return the addresses with their namespace, as `include` takes them."""
        return self.urls, self.namespace

    @property
    def urls(self) -> list[URLPattern]:
        edited = require_http_methods(["GET", "HEAD", "POST"])
        return [
            self.path("", require_safe(self.show_all), "list"),
            self.path("new", edited(self.edit), "new"),
            self.path("at/<str:name>", edited(self.edit), "one"),
            self.path("at/<str:name>/remove", edited(self.remove), "remove"),
        ]

    def path(self, route: str, view: View, name: str) -> URLPattern:
        """Return the address of a view that only those may see who may."""
        return path(route, sensitive_post_parameters("key")(only(type(self).may, self.words)(view)), name=name)

    def posted(self, route: str, view: View, name: str) -> URLPattern:
        return self.path(route, require_POST(view), name)

    def named(self, name: str) -> Any:
        return get_object_or_404(self.rows(), **{self.name_column: name})

    def show_all(self, request: HttpRequest, **more: Any) -> HttpResponse:
        """Show the list; with a `problem`, why something was not done."""
        context = {"section": self.section, **self.about_all(), **more}
        return render(request, f"{self.templates}/list.html", context, status=422 if more.get("problem") else 200)

    def edit(self, request: HttpRequest, name: str | None = None) -> HttpResponse:
        """Show one, or a form for a new one; then store what is typed."""
        row = None if name is None else self.named(name)
        form = self.form(row, request.POST if request.method == "POST" else None)
        if form.is_valid() and (saved := self.save(form, actor_of(request))) is not None:
            messages.success(request, _("{name} is saved.").format(name=self.name_of(saved)))
            return self.to(self.saved, saved)
        return self.show(request, row, form)

    def to(self, page: str, row: R) -> HttpResponse:
        return redirect(f"{self.namespace}:{page}", *([] if page == "list" else [self.name_of(row)]))

    def show(self, request: HttpRequest, row: R | None, form: DraftForm | None = None, **more: Any) -> HttpResponse:
        form = form or self.form(row)
        context = {"section": self.section, "row": row, "form": form, **self.about(row), **more}
        status = 422 if form.errors or form.weaker else 200
        return render(request, f"{self.templates}/edit.html", context, status=status)

    def remove(self, request: HttpRequest, name: str) -> HttpResponse:
        """Say what removing means; then do it."""
        row = self.named(name)
        if request.method != "POST":
            return render(request, f"{self.templates}/remove.html", {"section": self.section, "row": row})
        try:
            self.delete(row, actor_of(request))
        except Conflict as error:
            return self.show_all(request, problem=str(error))
        messages.success(request, _("{name} was removed.").format(name=name))
        return self.to("list", row)
