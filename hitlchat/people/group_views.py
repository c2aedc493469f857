"""Named groups: made, renamed, filled and deleted."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from hitlchat.accounts import roles
from hitlchat.gate import ruling
from hitlchat.gate.actor import actor_of
from hitlchat.people import grouping
from hitlchat.people.forms import GroupForm
from hitlchat.people.rules import Refused
from hitlchat.people.views import administrator_only, told


@administrator_only
@require_POST
def create(request: HttpRequest) -> HttpResponse:
    try:
        made = grouping.create(request.POST.get("name", ""), actor_of(request))
    except Refused as refused:
        messages.warning(request, f"No group was made. {refused}")
        return redirect("people:list")
    return redirect("people:group", made.pk)


@administrator_only
@require_http_methods(["GET", "HEAD"])
def group(request: HttpRequest, group_id: int) -> HttpResponse:
    return _page(request, group_id)


@administrator_only
@require_POST
def rename(request: HttpRequest, group_id: int) -> HttpResponse:
    name, seen = request.POST.get("name", ""), request.POST.get("seen", "")
    return _do(request, group_id, lambda: grouping.rename(group_id, name, actor_of(request), seen))


@administrator_only
@require_POST
def add(request: HttpRequest, group_id: int) -> HttpResponse:
    return _do(request, group_id, lambda: grouping.add(group_id, request.POST.get("person", ""), actor_of(request)))


@administrator_only
@require_POST
def remove(request: HttpRequest, group_id: int, user_id: int) -> HttpResponse:
    return _do(request, group_id, lambda: grouping.remove(group_id, user_id, actor_of(request)))


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, group_id: int) -> HttpResponse:
    if request.method != "POST":
        found = get_object_or_404(roles.named_groups(), pk=group_id)
        people = found.user_set.order_by("username")
        context = {"section": "people", "group": found, "people": people}
        context |= {"named_by_a_rule": grouping.is_named_by_a_rule(found), "decides_about": ruling.naming(found.pk)}
        return render(request, "people/delete_group.html", context)
    try:
        gone = grouping.delete(group_id, actor_of(request), request.POST.get("seen", ""))
    except Refused as refused:
        return _page(request, group_id, str(refused))
    messages.success(request, f"The group {gone.name} is deleted.")
    return redirect("people:list")


def _do(request: HttpRequest, group_id: int, act: Callable[[], Group]) -> HttpResponse:
    try:
        act()
    except Refused as refused:
        return _page(request, group_id, str(refused))
    return redirect("people:group", group_id)


def _page(request: HttpRequest, group_id: int, problem: str = "") -> HttpResponse:
    found = get_object_or_404(roles.named_groups(), pk=group_id)
    context = {
        "section": "people",
        "group": found,
        "form": GroupForm(initial={"name": found.name}),
        "people": found.user_set.order_by("username"),
        "others": User.objects.filter(is_active=True).exclude(groups=found).order_by("username"),
        "named_by_a_rule": grouping.is_named_by_a_rule(found),
        "decides_about": ruling.naming(found.pk),
        "problem": problem,
        "told": told(request),
    }
    return render(request, "people/group.html", context, status=409 if problem else 200)
