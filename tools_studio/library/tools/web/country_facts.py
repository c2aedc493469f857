from typing import Annotated, Any

from hitl import fetch


def ask(path: str, newest: dict[str, Any]) -> Any:
    """The second of the two parts that the World Bank answers with; the first is about pages, or an error."""
    answer = fetch(f"https://api.worldbank.org/v2/{path}", params={"format": "json", **newest})
    found = answer["json"]
    if answer["status"] != 200 or not isinstance(found, list):
        raise ValueError(f"the World Bank answered with status {answer['status']}")
    return found[1] if len(found) > 1 and found[1] else None


def run(country: Annotated[str, {"pattern": "^[A-Za-z]{2,3}$"}]) -> dict[str, Any]:
    """Tell the capital, region, income group and population of a country, from the World Bank.

    Args:
        country: its code of two or three letters, such as DE or DEU
    """
    found = ask(f"country/{country.upper()}", {})
    if not found:
        raise ValueError(f"there is no country {country.upper()}")
    facts = found[0]
    people = ask(f"country/{country.upper()}/indicator/SP.POP.TOTL", {"mrnev": 1})
    return {
        "name": facts["name"],
        "code": facts["iso2Code"],
        "capital": facts.get("capitalCity", ""),
        "region": facts.get("region", {}).get("value", "").strip(),
        "income_group": facts.get("incomeLevel", {}).get("value", ""),
        "population": people[0]["value"] if people else None,
        "population_year": people[0]["date"] if people else None,
    }
