from hitl import now

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def run(timezone: str = "UTC") -> dict[str, str]:
    """Get the current date and time.

    Args:
        timezone: a name such as UTC or Europe/Berlin
    """
    moment = now(timezone)
    return {
        "timezone": timezone,
        "date": moment.strftime("%Y-%m-%d"),
        "time": moment.strftime("%H:%M:%S"),
        "weekday": DAYS[moment.weekday()],
    }
