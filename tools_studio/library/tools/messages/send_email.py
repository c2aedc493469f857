# Before it is published: name your own recipients in its capabilities instead of @example.com.
import hitl


def checked(to: list[str], subject: str, text: str) -> list[str]:
    recipients = [address.strip() for address in to if address.strip()]
    if not recipients or not subject.strip() or not text.strip():
        raise ValueError("expected at least one recipient, a subject and a text")
    return recipients


def preview(to: list[str], subject: str, text: str) -> dict[str, str]:
    recipients = checked(to, subject, text)
    return {"To": ", ".join(recipients), "Subject": subject, "Text": text, "Recipients": str(len(recipients))}


def run(to: list[str], subject: str, text: str) -> dict[str, str | int]:
    """Send an e-mail to people that this tool may write to.

    Args:
        to: the addresses
        subject: what it is about, in one line
        text: the message as plain text
    """
    recipients = checked(to, subject, text)
    hitl.send_email(recipients, subject, text)
    return {"sent_to": len(recipients), "subject": subject}
