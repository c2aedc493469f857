"""Where the calls behind a figure are, and where what is advised can be done, for somebody who may do it."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.urls import reverse

from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.insights.advice import Advice
from hitlchat.insights.period import Period


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
