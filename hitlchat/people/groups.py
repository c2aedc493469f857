"""Named groups of people. They give no right by themselves; what a group may decide is said elsewhere."""

from typing import Final

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils.translation import gettext as _

from hitlchat.accounts import roles
from hitlchat.base.problems import Conflict
from hitlchat.gate import ruling, stated
from hitlchat.gate.actor import Actor
from hitlchat.gate.policies.loading import Unloadable, in_force
from hitlchat.gate.transition import note
from hitlchat.people import membership
from hitlchat.people.membership import is_plain

LONGEST_NAME: Final = 80


def fitting(name: str) -> str:
    """Return the name as it is stored. Raises: Conflict"""
    fitted = " ".join(name.split())
    if not 1 <= len(fitted) <= LONGEST_NAME:
        raise Conflict(_("Expected a name of 1 to {most} characters.").format(most=LONGEST_NAME))
    if not is_plain(fitted):
        raise Conflict("The name has characters that cannot be seen, or that look like others. Leave them out.")
    # With spaces in between it would still be read as one.
    if fitted.replace(" ", "").casefold().startswith(roles.PREFIX):
        raise Conflict(_("Names that begin with “{prefix}” are reserved for roles.").format(prefix=roles.PREFIX))
    return fitted


def is_named_by_a_rule(group: Group) -> bool:
    """Return whether a policy names the group; what classes of the operator go by is unknown."""
    try:
        return any(group.name in rule.groups for rule in in_force())
    except Unloadable:
        return False


def create(name: str, actor: Actor) -> Group:
    with transaction.atomic():
        membership.lock(actor)
        fitted = _free(fitting(name))
        group = Group.objects.create(name=fitted)
        note(None, "group.created", actor=actor, data={"group": fitted, "group_id": group.pk})
    return group


def rename(group_id: int, name: str, actor: Actor, seen: str) -> Group:
    """Raises: Conflict if the group is not called `seen` any more."""
    with transaction.atomic():
        group = _locked(group_id, actor, seen)
        group.name = _free(fitting(name), group_id)
        group.save(update_fields=["name"])
        note(None, "group.renamed", actor=actor, data={"group_id": group.pk, "from": seen, "to": group.name})
    return group


def delete(group_id: int, actor: Actor, seen: str, *, confirmed: bool = False) -> Group:
    """Delete a group. NotConfirmed: the rules of a tool name it."""
    with transaction.atomic():
        group = _locked(group_id, actor, seen)
        group_id, people = group.pk, dict(group.user_set.order_by("username").values_list("pk", "username"))
        ruling.delete_group(group, actor, confirmed=confirmed)
        data = {"group": seen, "group_id": group_id, "people": list(people.values())}
        note(None, "group.deleted", actor=actor, data=data | stated.states("person", *people))
    return group


def add(group_id: int, username: str, actor: Actor) -> Group:
    with transaction.atomic():
        group = _locked(group_id, actor)
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise Conflict(_("There is no active person named {name}.").format(name=repr(username)))
        if not group.user_set.filter(pk=user.pk).exists():
            group.user_set.add(user)
            _note_person("group.person_added", group, user, actor)
    return group


def remove(group_id: int, user_id: int, actor: Actor) -> Group:
    with transaction.atomic():
        group = _locked(group_id, actor)
        user = group.user_set.filter(pk=user_id).first()
        if user is not None:
            group.user_set.remove(user)
            _note_person("group.person_removed", group, user, actor)
    return group


def _locked(group_id: int, actor: Actor, seen: str | None = None) -> Group:
    membership.lock(actor)
    group = roles.named_groups().select_for_update().filter(pk=group_id).first()
    if group is None:
        raise Conflict("The group no longer exists.")
    if seen is not None and group.name != seen:
        words = _("Not saved: the group is now called {name}. Review your change again.")
        raise Conflict(words.format(name=repr(group.name)))
    return group


def _free(name: str, group_id: int | None = None) -> str:
    if Group.objects.filter(name__iexact=name).exclude(pk=group_id or 0).exists():
        raise Conflict("There is already a group with this name.")
    return name


def _note_person(name: str, group: Group, user: User, actor: Actor) -> None:
    data = {"group": group.name, "group_id": group.pk, **membership.about(user)}
    note(None, name, actor=actor, data=data | stated.states("person", user.pk))
