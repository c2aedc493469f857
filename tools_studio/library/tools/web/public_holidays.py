from typing import Annotated, Any

from hitl import fetch


def run(
    country: Annotated[str, {"pattern": "^[A-Za-z]{2}$"}],
    year: Annotated[int, {"minimum": 1975, "maximum": 2075}],
    region: str = "",
) -> list[dict[str, Any]]:
    """List the public holidays of a country in a year.

    Args:
        country: its code of two letters, such as DE
        year: the year
        region: only those of this part of the country, too, such as DE-BY; empty means all, with their regions
    """
    answer = fetch(f"https://date.nager.at/api/v3/PublicHolidays/{year}/{country.upper()}")
    if answer["status"] == 404 or answer["status"] == 204:
        raise ValueError(f"date.nager.at knows no country {country.upper()}")
    if answer["status"] != 200 or not isinstance(answer["json"], list):
        raise ValueError(f"date.nager.at answered with status {answer['status']}")
    found = [day for day in answer["json"] if not region or not day.get("counties") or region in day["counties"]]
    return [
        {
            "date": day["date"],
            "name": day["name"],
            "local_name": day["localName"],
            "regions": day.get("counties") or [],
        }
        for day in found
    ]
