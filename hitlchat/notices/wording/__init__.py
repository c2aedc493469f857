"""What notices say: facts about calls as JSON, as a mail, and as Slack's text. Arguments only where an administrator
allows it, and then without what looks like a secret."""

from hitlchat.notices.wording.texts import MOST_LISTED, Burst, Text, decided, tested, waiting

__all__ = ["MOST_LISTED", "Burst", "Text", "decided", "tested", "waiting"]
