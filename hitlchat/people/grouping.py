"""Named groups of people. They give no right by themselves; what a group may decide is said elsewhere."""

from typing import Final

from django.contrib.auth.models import Group, User
from django.db import transaction

from hitlchat.accounts import roles
from hitlchat.gate import ruling
from hitlchat.gate.actor import Actor
from hitlchat.gate.policies.loading import Unloadable, in_force
from hitlchat.gate.transition import note
from hitlchat.people import changing
from hitlchat.people.changing import Refused, Stale
from hitlchat.people.inviting import is_plain

LONGEST_NAME: Final = 80


def fitting(name: str) -> str:
    """The name as it is kept. Refused: it does not fit."""
    kept = " ".join(name.split())
    if not 1 <= len(kept) <= LONGEST_NAME:
        raise Refused(f"Expected a name of 1 to {LONGEST_NAME} characters.")
    if not is_plain(kept):
        raise Refused("The name has characters that cannot be seen, or that look like others. Leave them out.")
    # With spaces in between it would still be read as one.
    if kept.replace(" ", "").casefold().startswith(roles.PREFIX):
        raise Refused(f"Names that begin with “{roles.PREFIX}” are kept for roles.")
    return kept


def is_named_by_a_rule(group: Group) -> bool:
    """Does a policy of this installation name it? What a class of the operator's own goes by, nobody knows."""
    try:
        return any(group.name in rule.groups for rule in in_force())
    except Unloadable:
        return False


def create(name: str, actor: Actor) -> Group:
    with transaction.atomic():
        changing.lock(actor)
        kept = _free(fitting(name))
        group = Group.objects.create(name=kept)
        note(None, "group.created", actor=actor, data={"group": kept, "group_id": group.pk})
    return group


def rename(group_id: int, name: str, actor: Actor, seen: str) -> Group:
    """Stale: it is not called `seen` any more."""
    with transaction.atomic():
        group = _locked(group_id, actor, seen)
        kept = _free(fitting(name), group_id)
        group.name = kept
        group.save(update_fields=["name"])
        note(None, "group.renamed", actor=actor, data={"group_id": group.pk, "from": seen, "to": kept})
    return group


def delete(group_id: int, actor: Actor, seen: str) -> Group:
    with transaction.atomic():
        group = _locked(group_id, actor, seen)
        people = list(group.user_set.order_by("username").values_list("username", flat=True))
        note(None, "group.deleted", actor=actor, data={"group": seen, "group_id": group.pk, "people": people})
        decided = ruling.naming(group.pk)
        group.delete()
        ruling.group_is_gone(decided, actor)
    return group


def add(group_id: int, username: str, actor: Actor) -> Group:
    with transaction.atomic():
        group = _locked(group_id, actor)
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise Refused(f"There is no active person named {username!r}.")
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
    changing.lock(actor)
    group = roles.named_groups().select_for_update().filter(pk=group_id).first()
    if group is None:
        raise Refused("There is no such group any more.")
    if seen is not None and group.name != seen:
        raise Stale(f"Nothing was changed: the group is called {group.name!r} now. Look again.")
    return group


def _free(name: str, group_id: int | None = None) -> str:
    if Group.objects.filter(name__iexact=name).exclude(pk=group_id or 0).exists():
        raise Refused("There is a group of this name already.")
    return name


def _note_person(name: str, group: Group, user: User, actor: Actor) -> None:
    data = {"group": group.name, "group_id": group.pk, "person": user.get_username(), "person_id": user.pk}
    note(None, name, actor=actor, data=data)
