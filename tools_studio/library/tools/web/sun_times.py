from datetime import date
from typing import Annotated, Any

from hitl import fetch

SOURCE = "sunrise-sunset.org"


def ask(url: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = fetch(url, params=params)
    if answer["status"] != 200 or not isinstance(answer["json"], dict):
        raise ValueError(f"sunrise-sunset.org answered with status {answer['status']}")
    return answer["json"]


def run(
    latitude: Annotated[float, {"minimum": -90, "maximum": 90}],
    longitude: Annotated[float, {"minimum": -180, "maximum": 180}],
    day: date,
    timezone: str = "UTC",
) -> dict[str, Any]:
    """Tell when the sun rises and sets at a place on a day.

    Args:
        latitude: degrees north, negative for south
        longitude: degrees east, negative for west
        day: the day
        timezone: the time zone to tell it in, such as Europe/Berlin
    """
    params = {"lat": latitude, "lng": longitude, "date": day.isoformat(), "formatted": 0, "tzid": timezone}
    answer = ask("https://api.sunrise-sunset.org/json", params)
    if answer.get("status") != "OK":
        raise ValueError(f"sunrise-sunset.org says {answer.get('status')}")
    times = answer["results"]
    seconds = int(times["day_length"])
    if seconds == 0:
        return {"day": day.isoformat(), "note": "the sun does not rise or does not set on this day", "source": SOURCE}
    return {
        "day": day.isoformat(),
        "sunrise": times["sunrise"],
        "solar_noon": times["solar_noon"],
        "sunset": times["sunset"],
        "civil_twilight": [times["civil_twilight_begin"], times["civil_twilight_end"]],
        "day_length": f"{seconds // 3600}:{seconds % 3600 // 60:02d}",
        "source": SOURCE,
    }
