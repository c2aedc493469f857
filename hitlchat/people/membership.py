"""People: invitations, roles, named groups, and who may come in. Each change keeps its rules and is on record.

A group gives no right by itself; rules of tools and policies name it.
"""

import secrets
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.accounts import roles, sign_in
from hitlchat.accounts.models import Invitation, Role, Token, hashed
from hitlchat.accounts.sign_in import address
from hitlchat.agent import conversations, runner, writing
from hitlchat.agent.models import ACTIVE, Run
from hitlchat.base.problems import Conflict, required
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import see
from hitlchat.gate import ruling, stated, stopping
from hitlchat.gate.actor import CONSOLE, SYSTEM, Actor
from hitlchat.gate.models import CallerKind, ToolCall
from hitlchat.gate.perform import NO_AUTHOR
from hitlchat.gate.policies.loading import Unloadable, in_force
from hitlchat.gate.transition import note

# Of an invitation: a link that makes one account with a given role.
INVITATION_LASTS: Final = timedelta(days=7)
MOST_OPEN: Final = 100
# Of a group.
LONGEST_NAME: Final = 80
DEACTIVATED: Final = gettext_noop("the account it was called for was deactivated")
NOT_STARTED: Final = Q(status__in=stopping.NOT_STARTED)


def lock(actor: Actor) -> set[int]:
    """Lock and return the active administrators: changes of people come one after the other. Raises: Conflict"""
    rows = User.objects.select_for_update().filter(is_superuser=True, is_active=True).order_by("pk")
    administrators = set(rows.values_list("pk", flat=True))
    if actor != CONSOLE and not (actor.means == "session" and actor.user_id in administrators):
        raise Conflict("You are no longer an administrator.")
    return administrators


def invite(role: Role, for_whom: str, actor: Actor) -> tuple[Invitation, str]:
    """Make an invitation, and return it with the secret of its link; only now that is known. Raises: Conflict"""
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        lock(actor)
        if open_invitations().count() >= MOST_OPEN:
            raise Conflict(f"{MOST_OPEN} invitations are open, which is the limit. Revoke some first.")
        made = Invitation.objects.create(
            digest=hashed(secret),
            role=role,
            note=for_whom,
            invited_by_id=actor.user_id,
            expires_at=timezone.now() + INVITATION_LASTS,
        )
        note(None, "person.invited", actor=actor, data=_facts_of(made))
    return made, secret


def revoke_invitation(invitation_id: int, actor: Actor) -> Invitation:
    """Revoke the link of an invitation. Raises: Conflict, if it is not open."""
    with transaction.atomic():
        lock(actor)
        found = Invitation.objects.select_for_update().filter(pk=invitation_id).first()
        if found is None:
            raise Conflict("This invitation no longer works: it was used or revoked.")
        note(None, "person.invitation_revoked", actor=actor, data=_facts_of(found))
        Invitation.objects.filter(pk=found.pk).delete()
    return found


def open_invitations() -> QuerySet[Invitation]:
    """Return those that can be used now: not lapsed, and of someone who may still invite."""
    inviter = Q(invited_by=None) | Q(invited_by__is_superuser=True, invited_by__is_active=True)
    return Invitation.objects.filter(inviter, expires_at__gt=timezone.now())


def find_invitation(secret: str) -> Invitation | None:
    return open_invitations().select_related("invited_by").filter(digest=hashed(secret)).first()


def is_plain(name: str) -> bool:
    """Return whether a name has no hidden letters, and none that pass for others: approvals name people."""
    shown = see(name)
    return not shown.warnings and not any(piece.hidden for piece in shown.pieces)


def name_is_taken(username: str) -> bool:
    """Return whether the name is taken, also by one that differs in capitals only: approvals name people."""
    return User.objects.filter(username__iexact=username).exists()


def redeem(secret: str, username: str, password: str) -> User:
    """Make the account and use the link up. Raises: Conflict, the link opens nothing, or somebody has that name."""
    with transaction.atomic():
        # Alone: also two who choose the same name, in other capitals.
        list(User.objects.select_for_update().filter(is_superuser=True, is_active=True).order_by("pk"))
        found = find_invitation(secret)
        if found is None or Invitation.objects.filter(pk=found.pk).delete()[0] != 1:
            raise Conflict("This invitation no longer works.")
        if name_is_taken(username):
            raise Conflict("This name is taken.")
        user = User.objects.create_user(username, password=password)
        roles.give(user, Role(found.role))
        facts = _facts_of(found) | about(user) | stated.states("person", user.pk)
        note(None, "person.joined", actor=Actor(user.pk, "session"), data=facts)
    return user


def state(user: User) -> str:
    """Return what a page says it has shown, to be compared with what is."""
    return f"{roles.role_of(user).value}, {'active' if user.is_active else 'deactivated'}"


def change_role(user_id: int, role: Role, actor: Actor, seen: str | None = None) -> User:
    """Give this person `role` from now on. Raises: Conflict, also if they are not as `seen` (`state`) any more."""
    with transaction.atomic():
        user, is_the_last = _locked(user_id, actor, seen)
        if is_the_last and role != Role.ADMINISTRATOR:
            raise Conflict(_the_last(user))
        before = roles.role_of(user)
        if before == role:
            raise Conflict(f"{user.get_username()} already has this role.")
        roles.give(user, role)
        void = 0 if role == Role.ADMINISTRATOR else Invitation.objects.filter(invited_by=user).delete()[0]
        is_author = roles.AUTHORING in roles.PERMISSIONS[role]
        # Tests are for authors, and what they run may never have been published.
        which = NOT_STARTED & Q(caller_kind=CallerKind.STUDIO)
        tests = 0 if is_author else _withdraw(user.pk, actor, which, NO_AUTHOR)
        ended = {"invitations_void": void, "calls_withdrawn": tests}
        _note("person.role_changed", user, actor, {"from": before.value, "to": role.value, **ended})
    return user


def deactivate(user_id: int, actor: Actor, seen: str | None = None) -> User:
    """Deactivate a person: their sessions, tokens and shared links end for good, and what they asked for does not
    start. What executes goes on. Raises: Conflict
    """
    with transaction.atomic():
        user, is_the_last = _locked(user_id, actor, seen)
        if not user.is_active:
            raise Conflict(f"{user.get_username()} is already deactivated.")
        if is_the_last:
            raise Conflict(_the_last(user))
        user.is_active = False
        user.save(update_fields=["is_active"])
        sessions, tokens = sign_in.end_all(user.pk), _end_tokens(user)
        ended: dict[str, Any] = {"sessions": sessions, "tokens": list(tokens.values())}
        ended["invitations_void"] = Invitation.objects.filter(invited_by=user).delete()[0]
        conversations.unshare_all(user, actor)
        # Before the calls tell of their end, which would have their runs go on. Once more: a call that came in just
        # now may not have shown yet.
        transaction.on_commit(partial(_stop, user.pk, actor))
        ended["calls_withdrawn"] = _withdraw(user.pk, actor)
        _note("person.deactivated", user, actor, {"from": "active", "to": "deactivated", **ended}, tokens)
    return user


def reactivate(user_id: int, actor: Actor, seen: str | None = None) -> User:
    """Let them sign in again, with their password and role of before. Raises: Conflict."""
    with transaction.atomic():
        user, _is_the_last = _locked(user_id, actor, seen)
        if user.is_active:
            raise Conflict(f"{user.get_username()} is already active.")
        # Of a sign-in that was under way while they were deactivated.
        sign_in.end_all(user.pk)
        tokens = _end_tokens(user)
        user.is_active = True
        user.save(update_fields=["is_active"])
        _note("person.reactivated", user, actor, {"from": "deactivated", "to": "active"}, tokens)
    return user


def everyone(q: str = "", role: str = "", state: str = "") -> QuerySet[Any]:
    """Return people by name, each with `role` and `token_count`, narrowed to what fits all that is given."""
    unexpired = Q(tokens__expires_at=None) | Q(tokens__expires_at__gt=timezone.now())
    rows = roles.with_roles(User.objects.annotate(token_count=Count("tokens", filter=unexpired)))
    if q:
        names = ("username", "first_name", "last_name", "email")
        rows = rows.filter(Q(*[(f"{name}__icontains", q) for name in names], _connector=Q.OR))
    if role:
        rows = rows.filter(role=role)
    if state:
        rows = rows.filter(is_active=state == "active")
    return rows.order_by("-is_active", "username")


def not_started(user: User) -> int:
    return ToolCall.objects.filter(NOT_STARTED, caller=user).count()


def is_named_by_a_rule(group: Group) -> bool:
    """Return whether a policy names the group; what classes of the operator go by is unknown."""
    try:
        return any(group.name in rule.groups for rule in in_force())
    except Unloadable:
        return False


def create_group(name: str, actor: Actor) -> Group:
    with transaction.atomic():
        lock(actor)
        fitted = _group_name(name)
        group = Group.objects.create(name=fitted)
        note(None, "group.created", actor=actor, data={"group": fitted, "group_id": group.pk})
    return group


def rename_group(group_id: int, name: str, actor: Actor, seen: str) -> Group:
    """Raises: Conflict, also if the group is not called `seen` any more."""
    with transaction.atomic():
        group = _locked_group(group_id, actor, seen)
        group.name = _group_name(name, group_id)
        group.save(update_fields=["name"])
        note(None, "group.renamed", actor=actor, data={"group_id": group.pk, "from": seen, "to": group.name})
    return group


def delete_group(group_id: int, actor: Actor, seen: str, *, confirmed: bool = False) -> Group:
    """Delete a group. NotConfirmed: the rules of a tool name it."""
    with transaction.atomic():
        group = _locked_group(group_id, actor, seen)
        group_id, people = group.pk, dict(group.user_set.order_by("username").values_list("pk", "username"))
        ruling.delete_group(group, actor, confirmed=confirmed)
        data = {"group": seen, "group_id": group_id, "people": list(people.values())}
        note(None, "group.deleted", actor=actor, data=data | stated.states("person", *people))
    return group


def add_to_group(group_id: int, username: str, actor: Actor) -> Group:
    with transaction.atomic():
        group = _locked_group(group_id, actor)
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise Conflict(_("There is no active person named {name}.").format(name=repr(username)))
        if not group.user_set.filter(pk=user.pk).exists():
            group.user_set.add(user)
            _note_of_group("group.person_added", group, user, actor)
    return group


def remove_from_group(group_id: int, user_id: int, actor: Actor) -> Group:
    with transaction.atomic():
        group = _locked_group(group_id, actor)
        user = group.user_set.filter(pk=user_id).first()
        if user is not None:
            group.user_set.remove(user)
            _note_of_group("group.person_removed", group, user, actor)
    return group


def note_administrator(*, user: User, means: str = "session", **_: Any) -> None:
    """Put on record that somebody became an administrator without having been invited."""
    actor = Actor(user.pk, "session") if means == "session" else CONSOLE
    _note("person.joined", user, actor, {"role": Role.ADMINISTRATOR.value, "invited_by": None})


def note_sign_in(*, request: HttpRequest | None, user: User, **_: Any) -> None:
    if request is not None and (where := address(request)) is not None:
        note(None, "person.signed_in", actor=Actor(user.pk, "session"), data=about(user) | {"from": where})


def note_failure(*, credentials: Mapping[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """Put a failed sign-in on record. An unknown name is left out: it may be a password typed into the wrong field."""
    name = str(credentials.get("username") or "")
    user = User.objects.filter(username=name).first()
    if user is None or request is None or (where := address(request)) is None:
        return
    note(None, "person.sign_in_failed", actor=SYSTEM, data=about(user) | {"from": where})


def about(user: User) -> dict[str, Any]:
    return {"person": user.get_username(), "person_id": user.pk}


def _locked(user_id: int, actor: Actor, seen: str | None) -> tuple[User, bool]:
    """Return the locked row of a person, and whether they are the only active administrator. Raises: Conflict"""
    administrators = lock(actor)
    user = required(User.objects.select_for_update().filter(pk=user_id).first(), Conflict("There is no such person."))
    if actor.user_id == user.pk:
        raise Conflict("You cannot change your own role or deactivate yourself. Ask another administrator.")
    now = state(user)
    if seen is not None and seen != now:
        words = _("Not changed: someone else made a change first. {name} is now {state}. Review the change again.")
        raise Conflict(words.format(name=user.get_username(), state=now))
    return user, administrators == {user.pk}


def _the_last(user: User) -> str:
    return translatable(
        f"{user.get_username()} is the only active administrator. Make someone else an administrator first."
    )


def _end_tokens(user: User) -> dict[int, str]:
    # A call that is just coming in with one of them comes before this, or fails.
    tokens = list(Token.objects.select_for_update().filter(user=user))
    Token.objects.filter(user=user).delete()
    return {token.pk: f"{token.kind} {token.name}".strip() for token in tokens}


def _withdraw(user_id: int, actor: Actor, which: Q = NOT_STARTED, why: str = DEACTIVATED) -> int:
    ids = list(ToolCall.objects.filter(which, caller_id=user_id).values_list("pk", flat=True))
    for call_id in ids:
        stopping.withdraw_call(call_id, actor=actor, why=why)
    return len(ids)


def _stop(user_id: int, actor: Actor) -> None:
    writing.close_pages_soon(user_id)
    for run in Run.objects.filter(conversation__owner_id=user_id, status__in=ACTIVE):
        runner.stop(run.pk, run.conversation_id, actor, why=DEACTIVATED)
    _withdraw(user_id, actor)


def _note(name: str, user: User, actor: Actor, data: dict[str, object], ended: Iterable[int] = ()) -> None:
    """`ended`: the ids of their tokens that are gone."""
    states = stated.states("person", user.pk)
    states[stated.STATES] |= {"token": {str(key): None for key in ended}}
    note(None, name, actor=actor, data={**about(user), **data, **states})


def _locked_group(group_id: int, actor: Actor, seen: str | None = None) -> Group:
    """Return a locked group. Raises: Conflict, also if it is not called `seen` any more."""
    lock(actor)
    group = roles.named_groups().select_for_update().filter(pk=group_id).first()
    if group is None:
        raise Conflict("The group no longer exists.")
    if seen is not None and group.name != seen:
        words = _("Not saved: the group is now called {name}. Review your change again.")
        raise Conflict(words.format(name=repr(group.name)))
    return group


def _group_name(name: str, group_id: int = 0) -> str:
    """Return the name as it is stored, which no other group has. Raises: Conflict"""
    fitted = " ".join(name.split())
    if not 1 <= len(fitted) <= LONGEST_NAME:
        raise Conflict(_("Expected a name of 1 to {most} characters.").format(most=LONGEST_NAME))
    if not is_plain(fitted):
        raise Conflict("The name has characters that cannot be seen, or that look like others. Leave them out.")
    # With spaces in between it would still be read as one.
    if fitted.replace(" ", "").casefold().startswith(roles.PREFIX):
        raise Conflict(_("Names that begin with “{prefix}” are reserved for roles.").format(prefix=roles.PREFIX))
    if Group.objects.filter(name__iexact=fitted).exclude(pk=group_id).exists():
        raise Conflict("There is already a group with this name.")
    return fitted


def _note_of_group(name: str, group: Group, user: User, actor: Actor) -> None:
    data = {"group": group.name, "group_id": group.pk, **about(user)}
    note(None, name, actor=actor, data=data | stated.states("person", user.pk))


def _facts_of(invitation: Invitation) -> dict[str, object]:
    by = invitation.invited_by
    return {
        "invitation": invitation.pk,
        "role": invitation.role,
        "note": invitation.note,
        "invited_by": by.get_username() if isinstance(by, User) else None,
        "until": invitation.expires_at.isoformat(),
    }
