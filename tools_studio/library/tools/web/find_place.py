from typing import Annotated, Any

from hitl import fetch


def ask(url: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = fetch(url, params=params)
    if answer["status"] != 200 or not isinstance(answer["json"], dict):
        raise ValueError(f"open-meteo.com answered with status {answer['status']}")
    return answer["json"]


def run(name: str, country: str = "", limit: Annotated[int, {"minimum": 1, "maximum": 20}] = 5) -> list[dict[str, Any]]:
    """Find towns and places by name: where they are, in which country and time zone.

    Args:
        name: the name of the place, or its post code
        country: only in this country, as two letters such as DE
        limit: how many places at most
    """
    if len(name.strip()) < 2:
        raise ValueError("name: expected at least two letters")
    params = {"name": name.strip(), "count": limit, "language": "en", "format": "json"}
    if country:
        params["countryCode"] = country.upper()
    found = ask("https://geocoding-api.open-meteo.com/v1/search", params).get("results", [])
    wanted = {"name": "name", "region": "admin1", "country": "country", "timezone": "timezone",
              "latitude": "latitude", "longitude": "longitude", "population": "population"}  # fmt: skip
    return [{key: place.get(field) for key, field in wanted.items()} for place in found]
