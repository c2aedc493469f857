from datetime import datetime, timedelta
from typing import Any

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
# hours from UTC in winter, whose rule for summer time, and the cities
ZONES = {
    "0 EU": "Europe/London Europe/Dublin Europe/Lisbon",
    "1 EU": "Europe/Amsterdam Europe/Berlin Europe/Brussels Europe/Budapest Europe/Copenhagen Europe/Madrid Europe/Oslo"
    " Europe/Paris Europe/Prague Europe/Rome Europe/Stockholm Europe/Vienna Europe/Warsaw Europe/Zurich",
    "2 EU": "Europe/Athens Europe/Bucharest Europe/Helsinki Europe/Kyiv Europe/Riga Europe/Sofia Europe/Vilnius",
    "-9 US": "America/Anchorage",
    "-8 US": "America/Los_Angeles",
    "-7 US": "America/Denver",
    "-6 US": "America/Chicago America/Winnipeg",
    "-5 US": "America/New_York America/Toronto",
    "-4 US": "America/Halifax",
    "9.5 AU": "Australia/Adelaide",
    "10 AU": "Australia/Hobart Australia/Melbourne Australia/Sydney",
    "12 NZ": "Pacific/Auckland",
    "-10": "Pacific/Honolulu",
    "-7": "America/Phoenix",
    "-6": "America/Costa_Rica America/Guatemala America/Mexico_City",
    "-5": "America/Bogota America/Lima America/Panama",
    "-4": "America/Caracas America/La_Paz America/Puerto_Rico",
    "-3": "America/Argentina/Buenos_Aires America/Montevideo America/Sao_Paulo",
    "0": "UTC GMT Africa/Abidjan Africa/Accra Africa/Dakar Atlantic/Reykjavik",
    "1": "Africa/Algiers Africa/Lagos Africa/Tunis",
    "2": "Africa/Johannesburg Africa/Maputo",
    "3": "Africa/Addis_Ababa Africa/Nairobi Asia/Baghdad Asia/Riyadh Europe/Istanbul Europe/Minsk Europe/Moscow",
    "4": "Asia/Baku Asia/Dubai Asia/Tbilisi Asia/Yerevan",
    "5": "Asia/Karachi Asia/Tashkent",
    "5.5": "Asia/Colombo Asia/Kolkata",
    "5.75": "Asia/Kathmandu",
    "6": "Asia/Dhaka",
    "7": "Asia/Bangkok Asia/Ho_Chi_Minh Asia/Jakarta",
    "8": "Asia/Hong_Kong Asia/Manila Asia/Shanghai Asia/Singapore Asia/Taipei Australia/Perth",
    "9": "Asia/Seoul Asia/Tokyo",
    "9.5": "Australia/Darwin",
    "10": "Australia/Brisbane",
}


def known(zone: str) -> list[Any]:
    """Minutes from UTC in winter, and the rule for summer time."""
    for rule, cities in ZONES.items():
        for city in cities.split():
            if city.lower() == zone.strip().lower():
                hours, _, summer = rule.partition(" ")
                return [int(float(hours) * 60), summer]
    raise ValueError(f"{zone!r} is not among the time zones of this tool; expected one such as Europe/Berlin")


def sunday(year: int, month: int, number: int) -> datetime:
    """The first or second Sunday of a month, or with -1 the last one, at midnight."""
    if number < 0:
        last = datetime(year, month + 1, 1) - timedelta(days=1)
        return last - timedelta(days=(last.weekday() + 1) % 7)
    first = datetime(year, month, 1)
    return first + timedelta(days=(6 - first.weekday()) % 7 + 7 * (number - 1))


def is_summer(moment: datetime, minutes: int, rule: str) -> bool:
    """Whether summer time is in force at a moment in UTC."""
    year = moment.year
    if rule == "EU":
        hour = timedelta(hours=1)
        return sunday(year, 3, -1) + hour <= moment < sunday(year, 10, -1) + hour
    local = moment + timedelta(minutes=minutes)
    if rule == "US":
        return sunday(local.year, 3, 2) + timedelta(hours=2) <= local < sunday(local.year, 11, 1) + timedelta(hours=1)
    if rule in ("AU", "NZ"):
        begins = sunday(local.year, 10, 1) if rule == "AU" else sunday(local.year, 9, -1)
        return not sunday(local.year, 4, 1) + timedelta(hours=2) <= local < begins + timedelta(hours=2)
    return False


def offset(moment: datetime, zone: list[Any]) -> timedelta:
    return timedelta(minutes=zone[0] + 60 * is_summer(moment, zone[0], zone[1]))


def run(moment: datetime, from_zone: str, to_zone: str) -> dict[str, Any]:
    """Tell what a time of day in one time zone is in another, summer time included.

    Args:
        moment: the date and time there, such as 2026-03-29T09:30:00, from 2023 on
        from_zone: the zone it is in, such as Europe/Berlin
        to_zone: the zone to tell it in, such as Asia/Tokyo
    """
    start, goal = known(from_zone), known(to_zone)
    if moment.tzinfo is not None:
        raise ValueError("moment: expected a time without Z or +01:00, since from_zone says where it is")
    if not 2023 <= moment.year <= 2099:
        raise ValueError("moment: expected a year from 2023 to 2099; the rules of other years are not known here")
    guesses = [moment - timedelta(minutes=start[0] + summer) for summer in (60, 0)]
    fitting = [guess for guess in guesses if guess + offset(guess, start) == moment]
    there = (fitting or guesses[1:])[0]
    there = there + offset(there, goal)
    notes = {0: "the clocks go forward then: there is no such time", 2: "the clocks go back then: the first of two"}
    return {
        "moment": there.isoformat(),
        "weekday": DAYS[there.weekday()],
        "zone": to_zone,
        "note": notes.get(len(fitting), ""),
    }
