"""Public services, by answers of the shape that they document."""

from typing import Any

import pytest

from tests.tables import each_row
from tests.tools_studio.library.answers import ANSWERS, COUNTRY, FORECAST, HOLIDAYS, PLACE, SUN
from tests.tools_studio.library.world import BY_NAME, World, fault, result, shown

WEB = [tool for tool in BY_NAME.values() if tool.group == "web"]
every_service = pytest.mark.parametrize("tool", WEB, ids=lambda tool: tool.name)


@pytest.fixture
def online(world: World) -> World:
    world.answers = dict(ANSWERS)
    return world


@every_service
@pytest.mark.parametrize("answer", [(500, None), (200, None), (200, "text"), (503, {"error": "busy"})], ids=str)
def test_a_service_in_trouble_is_named_with_its_status(tool: Any, answer: tuple[int, Any], world: World) -> None:
    world.answers = {"https://": answer}
    assert fault(world.call(tool.name, **tool.example)).endswith(f"answered with status {answer[0]}")


@every_service
def test_only_the_hosts_that_it_names_are_asked(tool: Any, online: World) -> None:
    result(online.call(tool.name, **tool.example))
    hosts = {url.split("/")[2] for url, _ in online.asked}
    assert hosts <= set(tool.capabilities["fetch"]["hosts"])
    assert 1 <= len(online.asked) <= 2


def test_the_weather_is_told_in_words(online: World) -> None:
    assert result(online.call("weather_forecast", place=" Lisbon ", days=2)) == {
        "place": "Lisbon, Portugal",
        "now": {"weather": "partly cloudy", "temperature": 14.2, "humidity": 71, "wind": 11.4},
        "days": [
            {"date": "2026-01-31", "weather": "light rain", "lowest": 9.8, "highest": 15.1, "rain_mm": 2.4},
            {"date": "2026-02-01", "weather": "unknown", "lowest": 10.2, "highest": 16.0, "rain_mm": 0.0},
        ],
        "units": "°C, km/h, percent",
    }
    asked = online.asked[1][1]
    assert (asked["latitude"], asked["forecast_days"]) == (38.71667, 2)


def test_there_is_no_weather_where_there_is_no_place(world: World) -> None:
    world.answers = {"https://geocoding": {"generationtime_ms": 0.5}, "https://api.open-meteo": FORECAST}
    assert "no place called 'Nowhere'" in fault(world.call("weather_forecast", place="Nowhere"))
    assert result(world.call("find_place", name="Nowhere")) == []


def test_a_place_is_found_with_its_zone(online: World) -> None:
    assert result(online.call("find_place", name="Lisbon", country="pt", limit=1)) == [
        {"name": "Lisbon", "region": "Lisbon", "country": "Portugal", "timezone": "Europe/Lisbon",
         "latitude": PLACE["latitude"], "longitude": PLACE["longitude"], "population": 517802},
    ]  # fmt: skip
    assert online.asked[0][1] == {"name": "Lisbon", "count": 1, "language": "en", "format": "json", "countryCode": "PT"}
    assert "two letters" in fault(online.call("find_place", name="L"))


def test_the_sun_is_told_with_its_source(online: World) -> None:
    where = {"latitude": 38.72, "longitude": -9.14, "day": "2026-06-21", "timezone": "Europe/Lisbon"}
    expected = {"sunrise": "2026-06-21T06:11:31+01:00", "day_length": "14:53", "source": "sunrise-sunset.org"}
    assert shown(online.call("sun_times", **where), expected) == expected
    assert online.asked[0][1] == {
        "lat": 38.72, "lng": -9.14, "date": "2026-06-21", "formatted": 0, "tzid": "Europe/Lisbon",
    }  # fmt: skip


def test_where_the_sun_does_not_set_there_is_a_note(world: World) -> None:
    polar = {**SUN, "results": {**SUN["results"], "day_length": 0}}
    world.answers = {"https://": polar}
    found = result(world.call("sun_times", latitude=78, longitude=15, day="2026-06-21"))
    assert "does not rise or does not set" in found["note"]
    world.answers = {"https://": {"results": "", "status": "INVALID_TZID"}}
    assert "INVALID_TZID" in fault(world.call("sun_times", latitude=78, longitude=15, day="2026-06-21", timezone="x"))


def test_an_article_is_read_in_its_language(online: World) -> None:
    found = result(online.call("wikipedia_summary", title="Ada Lovelace"))
    assert found["address"] == "https://en.wikipedia.org/wiki/Ada_Lovelace"
    assert found["is_a_list_of_meanings"] is False
    online.answers = {"https://de.wikipedia.org": ANSWERS["https://en.wikipedia.org/w/api.php"]}
    assert result(online.call("wikipedia_summary", title="Ada Lovelace", language="de"))["title"] == "Ada Lovelace"


@each_row("page", [{"title": "X", "missing": True}, {"title": "<", "invalid": True}])
def test_an_article_that_is_not_there_is_said_to_be(world: World, page: dict[str, Any]) -> None:
    world.answers = {"https://": {"query": {"pages": [page]}}}
    assert "there is no article 'X'" in fault(world.call("wikipedia_summary", title="X"))


def test_an_ambiguous_title_is_said_to_be_one(world: World) -> None:
    page = {"title": "Mercury", "extract": "May mean", "pageprops": {"disambiguation": ""}}
    world.answers = {"https://": {"query": {"pages": [page]}}}
    assert result(world.call("wikipedia_summary", title="Mercury"))["is_a_list_of_meanings"] is True


def test_stories_without_an_address_lead_to_their_discussion(online: World) -> None:
    found = result(online.call("hacker_news", limit=2))
    assert [story["address"] for story in found] == ["https://example.com/a", "https://news.ycombinator.com/item?id=2"]
    assert found[0]["date"] == "2026-01-31"
    result(online.call("hacker_news", search="django"))
    assert [params.get("tags") for _, params in online.asked] == ["front_page", "story"]
    online.answers = {"https://": {"hits": []}}
    assert result(online.call("hacker_news", search="nothing at all")) == []


def test_a_repository_is_described(online: World) -> None:
    expected = {"name": "django/django", "license": "BSD-3-Clause", "stars": 80000, "archived": False}
    assert shown(online.call("github_repository", repository="django/django"), expected) == expected


@each_row(
    "repository, answer, words",
    [
        ("a/b", (404, {"message": "Not Found"}), "no public repository a/b"),
        ("a/b", (301, {"message": "Moved Permanently"}), "renamed"),
        ("a/b", (403, {"message": "API rate limit exceeded"}), "try again in an hour"),
        ("django", (200, {}), "expected owner and name"),
        ("a/..", (200, {}), "expected owner and name"),
        ("a/b/../../user", (200, {}), "expected owner and name"),
    ],
)
def test_a_repository_that_cannot_be_read_is_told_apart(world: World, repository: str, answer: Any, words: str) -> None:
    world.answers = {"https://": answer}
    assert words in fault(world.call("github_repository", repository=repository))


def test_a_repository_may_have_neither_licence_nor_description(world: World) -> None:
    world.answers = {"https://": {"full_name": "a/b", "license": None, "description": None}}
    expected = {"license": "", "description": "", "topics": []}
    assert shown(world.call("github_repository", repository="a/b"), expected) == expected


def test_a_country_has_a_capital_and_people(online: World) -> None:
    assert result(online.call("country_facts", country="ie")) == {
        "name": "Ireland", "code": "IE", "capital": "Dublin", "region": "Europe & Central Asia",
        "income_group": "High income", "population": 5395790, "population_year": "2024",
    }  # fmt: skip


def test_a_country_that_nobody_counted_has_no_number(world: World) -> None:
    world.answers = {"https://api.worldbank.org/v2/country/IE/": [{"total": 0}, None], "https://": COUNTRY}
    expected = {"population": None, "population_year": None}
    assert shown(world.call("country_facts", country="IE"), expected) == expected
    world.answers = {"https://": [{"message": [{"id": "120", "key": "Invalid value", "value": "Not valid"}]}]}
    assert "no country QQ" in fault(world.call("country_facts", country="qq"))


def test_holidays_may_be_those_of_a_region(online: World) -> None:
    found = result(online.call("public_holidays", country="de", year=2026))
    assert [(day["date"], day["regions"]) for day in found] == [
        ("2026-01-01", []),
        ("2026-01-06", ["DE-BW", "DE-BY", "DE-ST"]),
    ]
    assert len(result(online.call("public_holidays", country="DE", year=2026, region="DE-BE"))) == 1
    assert len(result(online.call("public_holidays", country="DE", year=2026, region="DE-BY"))) == len(HOLIDAYS)
    assert online.asked[0][0].endswith("/2026/DE")


@each_row("status", [404, 204])
def test_a_country_without_holidays_is_not_known(world: World, status: int) -> None:
    world.answers = {"https://": (status, None)}
    assert "knows no country QQ" in fault(world.call("public_holidays", country="qq", year=2026))


def test_money_is_converted_at_the_rate_of_the_day(online: World) -> None:
    money = {"amount": "100.00", "from_currency": "usd", "to_currency": "EUR"}
    assert result(online.call("exchange_rate", **money)) == {
        "amount": "84.12", "currency": "EUR", "rate": "0.8412", "day": "2026-01-30",
    }  # fmt: skip
    result(online.call("exchange_rate", **money, day="2026-01-30"))
    assert [url.rpartition("/")[2] for url, _ in online.asked] == ["latest", "2026-01-30"]
    assert online.asked[0][1] == {"base": "USD", "symbols": "EUR"}


@each_row("answer", [(404, {"message": "not found"}), (200, {"rates": {}}), (422, None)])
def test_a_currency_without_a_rate_is_refused(world: World, answer: Any) -> None:
    world.answers = {"https://": answer}
    money = {"amount": "1", "from_currency": "USD", "to_currency": "QQQ"}
    assert "no rate from USD to QQQ for latest" in fault(world.call("exchange_rate", **money))
    same = {**money, "to_currency": "usd"}
    assert "two different currencies" in fault(world.call("exchange_rate", **same))


def test_papers_are_listed_also_without_title_and_date(online: World) -> None:
    found = result(online.call("find_papers", search="human in the loop", limit=2))
    assert found["papers"] == [
        {"title": "People in the loop", "authors": ["Ann Berg", "The Loop Group"], "in": "Journal of Loops",
         "published": "2024-05", "doi": "10.1000/1", "address": "https://doi.org/10.1000/1"},
        {"title": "(no title)", "authors": [], "in": "", "published": "", "doi": "10.1000/2",
         "address": "https://doi.org/10.1000/2"},
    ]  # fmt: skip
    assert online.asked[0][1]["rows"] == 2


def test_books_are_listed_also_without_authors(online: World) -> None:
    assert result(online.call("find_books", search="sourdough"))["books"] == [
        {"title": "Sourdough", "authors": ["Ann Berg"], "first_published": 2019, "editions": 3,
         "address": "https://openlibrary.org/works/OL1W"},
    ]  # fmt: skip
    online.answers = {"https://": {"numFound": 1, "docs": [{"key": "/works/OL2W", "title": "Bread"}]}}
    assert result(online.call("find_books", search="bread"))["books"][0]["authors"] == []
    online.answers = {"https://": {"numFound": 0, "docs": []}}
    assert result(online.call("find_books", search="nothing")) == {"total": 0, "books": []}


@each_row("name", ["find_papers", "find_books"])
def test_a_search_has_a_bounded_length(world: World, name: str) -> None:
    with pytest.raises(Exception, match="maximum"):
        world.call(name, search="x", limit=21)
