# Before it is published: give the secret WEBHOOK_URL the address of your channel.
from typing import Literal

import hitl

MARKS = {"info": "", "warning": "Warning: ", "alarm": "ALARM: "}


def payload(text: str, urgency: str) -> dict[str, str]:
    """What Slack, Mattermost, Teams and many others take."""
    if not text.strip():
        raise ValueError("text: expected something to say")
    return {"text": f"{MARKS[urgency]}{text.strip()}"}


def preview(text: str, urgency: Literal["info", "warning", "alarm"] = "info") -> dict[str, str]:
    return {"To": "the address kept in WEBHOOK_URL", "Message": payload(text, urgency)["text"]}


def run(text: str, urgency: Literal["info", "warning", "alarm"] = "info") -> dict[str, int]:
    """Post a message to the team's channel.

    Args:
        text: the message
        urgency: what the message begins with
    """
    answer = hitl.webhook("WEBHOOK_URL", payload(text, urgency))
    return {"status": int(answer["status"])}
