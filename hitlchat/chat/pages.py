"""The pages that people open by name: in the bar, and by Ctrl+K. A new one is named here and routed in urls.py."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from hitlchat.accounts.roles import may_administer, may_author


@dataclass(frozen=True)
class Page:
    """`icon`: it is in the bar, by `label`; a `lesser` one moves to its menu where the window is narrow."""

    name: Any
    url: str
    may_open: Callable[[User], bool] = lambda _user: True
    icon: str = ""
    lesser: bool = False
    label: str = ""

    @property
    def section(self) -> str:
        """What a view calls its part of the site, to mark it in the bar."""
        return self.url.partition(":")[0]


ALL: Final = (
    Page(_("Chat"), "chat", icon="chat"),
    Page(_("Inbox"), "approvals", icon="inbox"),
    Page(_("History"), "history", icon="list"),
    Page(_("Tool Studio"), "studio", may_author, icon="tool", label="Studio"),
    Page(_("Servers"), "servers:list", may_administer, icon="server", lesser=True),
    Page(_("Policies"), "policies", icon="shield", lesser=True),
    Page(_("Insights"), "insights", icon="chart", lesser=True),
    Page(_("Record"), "record:page", may_administer, icon="seal", lesser=True),
    Page(_("People"), "people:list", may_administer, icon="people", lesser=True),
    Page(_("Grants"), "grants"),
    Page(_("Server questions"), "servers:questions"),
    Page(_("Notices"), "notices:page"),
    Page(_("Your account"), "people:account"),
    Page(_("Your tokens"), "mcp:tokens"),
    Page(_("Connect a client"), "mcp:connect"),
    Page(_("Inspector"), "mcp:inspector"),
    Page(_("New tool"), "new-tool", may_author),
    Page(_("Agents"), "agents:list", may_author),
    Page(_("Import tools"), "import-tools", may_author),
    Page(_("Tool Python"), "tool-python", may_author),
    Page(_("Add server"), "servers:new", may_administer),
    Page(_("Server gallery"), "servers:gallery", may_administer),
    Page(_("Composed tools"), "servers:drawer", may_administer),
    Page(_("Models"), "models:list", may_administer),
    Page(_("Tool sets"), "tool-sets:list", may_administer),
    Page(_("Presets"), "presets:list", may_administer),
    Page(_("Changes to tools, people and settings"), "history-changes", may_administer),
    Page(_("Texts for models"), "texts", may_administer),
    Page(_("Sandbox"), "sandbox-status", may_administer),
)


def open_to(user: User) -> Iterator[Page]:
    return (each for each in ALL if each.may_open(user))
