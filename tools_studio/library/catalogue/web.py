"""Public services that need no key. Each may read from the hosts it names, and from nothing else.

They ask every time although they change nothing: what is looked up leaves the house, and goes to somebody else.
"""

from typing import Any

from tools_studio.library.catalogue.shipped import ShippedTool


def _reads(*hosts: str, **said: Any) -> ShippedTool:
    fetch = {"mode": "allowlist", "hosts": sorted(hosts), "methods": ["GET"]}
    return ShippedTool(group="web", category="Web", capabilities={"fetch": fetch}, **said)


WEB = (
    _reads(
        "api.open-meteo.com",
        "geocoding-api.open-meteo.com",
        name="weather_forecast",
        title="Weather forecast",
        prompt_template="Tell the weather forecast in {args.place} for {args.days} days",
        example={"place": "Lisbon", "days": 3},
        tags=("weather",),
    ),
    _reads(
        "geocoding-api.open-meteo.com",
        name="find_place",
        title="Find place",
        prompt_template="Find the place {args.name}",
        example={"name": "Cork"},
        tags=("maps",),
    ),
    _reads(
        "api.sunrise-sunset.org",
        name="sun_times",
        title="Sun times",
        prompt_template="Tell the sun times (latitude: {args.latitude}, longitude: {args.longitude}, day: {args.day})",
        example={"latitude": 38.72, "longitude": -9.14, "day": "2026-06-21", "timezone": "Europe/Lisbon"},
        tags=("astronomy",),
    ),
    _reads(
        *(f"{language}.wikipedia.org" for language in ("en", "de", "fr", "es")),
        name="wikipedia_summary",
        title="Wikipedia summary",
        prompt_template="Read the Wikipedia summary of {args.title}",
        example={"title": "Ada Lovelace"},
        tags=("encyclopedia",),
    ),
    _reads(
        "hn.algolia.com",
        name="hacker_news",
        title="Hacker News",
        prompt_template="List Hacker News (limit: {args.limit})",
        example={"limit": 10},
        tags=("news",),
    ),
    _reads(
        "api.github.com",
        name="github_repository",
        title="GitHub repository",
        prompt_template="Describe a GitHub repository (repository: {args.repository})",
        example={"repository": "django/django"},
        tags=("code",),
    ),
    _reads(
        "api.worldbank.org",
        name="country_facts",
        title="Country facts",
        prompt_template="Tell the facts of a country (country: {args.country})",
        example={"country": "IE"},
        tags=("countries",),
    ),
    _reads(
        "date.nager.at",
        name="public_holidays",
        title="Public holidays",
        prompt_template="List public holidays (country: {args.country}, year: {args.year})",
        example={"country": "IE", "year": 2026},
        tags=("calendar", "countries"),
    ),
    _reads(
        "api.frankfurter.dev",
        name="exchange_rate",
        title="Exchange rate",
        prompt_template="Tell what {args.amount} {args.from_currency} is in {args.to_currency} at the exchange rate",
        example={"amount": "100.00", "from_currency": "USD", "to_currency": "EUR"},
        tags=("money", "currencies"),
    ),
    _reads(
        "api.crossref.org",
        name="find_papers",
        title="Find papers",
        prompt_template="Find papers about {args.search}",
        example={"search": "human in the loop", "limit": 5},
        tags=("science", "search"),
    ),
    _reads(
        "openlibrary.org",
        name="find_books",
        title="Find books",
        prompt_template="Find books about {args.search}",
        example={"search": "sourdough bread", "limit": 5},
        tags=("library", "search"),
    ),
)
