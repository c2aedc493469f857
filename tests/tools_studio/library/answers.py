"""What the public services answer, in the shape that their documentation has, by the beginning of the address."""

from typing import Any

PLACE = {
    "id": 2267057, "name": "Lisbon", "latitude": 38.71667, "longitude": -9.13333, "elevation": 45.0,
    "feature_code": "PPLC", "country_code": "PT", "timezone": "Europe/Lisbon", "population": 517802,
    "country_id": 2264397, "country": "Portugal", "admin1": "Lisbon",
}  # fmt: skip
FORECAST = {
    "latitude": 38.7, "longitude": -9.1, "timezone": "Europe/Lisbon", "utc_offset_seconds": 0,
    "current_units": {"time": "iso8601", "temperature_2m": "°C"},
    "current": {"time": "2026-01-31T12:00", "interval": 900, "temperature_2m": 14.2, "relative_humidity_2m": 71,
                "wind_speed_10m": 11.4, "weather_code": 2},
    "daily_units": {"time": "iso8601", "temperature_2m_max": "°C"},
    "daily": {"time": ["2026-01-31", "2026-02-01"], "weather_code": [61, 4711], "temperature_2m_max": [15.1, 16.0],
              "temperature_2m_min": [9.8, 10.2], "precipitation_sum": [2.4, 0.0]},
}  # fmt: skip
SUN: dict[str, Any] = {
    "results": {
        "sunrise": "2026-06-21T06:11:31+01:00", "sunset": "2026-06-21T21:04:55+01:00",
        "solar_noon": "2026-06-21T13:38:13+01:00", "day_length": 53604,
        "civil_twilight_begin": "2026-06-21T05:39:10+01:00", "civil_twilight_end": "2026-06-21T21:37:16+01:00",
        "nautical_twilight_begin": "2026-06-21T04:57:02+01:00", "nautical_twilight_end": "2026-06-21T22:19:24+01:00",
        "astronomical_twilight_begin": "2026-06-21T04:07:22+01:00",
        "astronomical_twilight_end": "2026-06-21T23:09:04+01:00",
    },
    "status": "OK",
    "tzid": "Europe/Lisbon",
}  # fmt: skip
ARTICLE = {
    "batchcomplete": True,
    "query": {"pages": [{
        "pageid": 974, "ns": 0, "title": "Ada Lovelace", "description": "English mathematician (1815-1852)",
        "extract": "Ada Lovelace was an English mathematician and writer.", "contentmodel": "wikitext",
        "fullurl": "https://en.wikipedia.org/wiki/Ada_Lovelace", "canonicalurl": "https://en.wikipedia.org/wiki/Ada",
    }]},
}  # fmt: skip
STORIES = {
    "hits": [
        {"objectID": "1", "title": "A story", "url": "https://example.com/a", "points": 120, "num_comments": 45,
         "author": "ann", "created_at": "2026-01-31T10:00:00Z", "_tags": ["story", "front_page"]},
        {"objectID": "2", "title": "Ask HN: what?", "points": 9, "num_comments": 3, "author": "ben",
         "created_at": "2026-01-30T10:00:00.000Z", "_tags": ["story", "ask_hn"]},
    ],
    "nbHits": 2, "page": 0, "nbPages": 1, "hitsPerPage": 10,
}  # fmt: skip
REPOSITORY = {
    "id": 4164482, "full_name": "django/django", "private": False, "html_url": "https://github.com/django/django",
    "description": "The Web framework for perfectionists with deadlines.", "fork": False, "language": "Python",
    "stargazers_count": 80000, "forks_count": 31000, "open_issues_count": 180, "archived": False,
    "topics": ["django", "web"], "pushed_at": "2026-01-31T10:00:00Z", "default_branch": "main",
    "license": {"key": "bsd-3-clause", "name": "BSD 3-Clause", "spdx_id": "BSD-3-Clause"},
}  # fmt: skip
_PAGES = {"page": 1, "pages": 1, "per_page": "50", "total": 1}
COUNTRY = [_PAGES, [{
    "id": "IRL", "iso2Code": "IE", "name": "Ireland", "capitalCity": "Dublin", "longitude": "-6.26749",
    "latitude": "53.3441", "region": {"id": "ECS", "iso2code": "Z7", "value": "Europe & Central Asia "},
    "incomeLevel": {"id": "HIC", "iso2code": "XD", "value": "High income"},
}]]  # fmt: skip
PEOPLE = [_PAGES, [{
    "indicator": {"id": "SP.POP.TOTL", "value": "Population, total"}, "country": {"id": "IE", "value": "Ireland"},
    "countryiso3code": "IRL", "date": "2024", "value": 5395790, "unit": "", "obs_status": "", "decimal": 0,
}]]  # fmt: skip
HOLIDAYS = [
    {"date": "2026-01-01", "localName": "Neujahr", "name": "New Year's Day", "countryCode": "DE", "fixed": False,
     "global": True, "counties": None, "launchYear": None, "types": ["Public"]},
    {"date": "2026-01-06", "localName": "Heilige Drei Könige", "name": "Epiphany", "countryCode": "DE",
     "fixed": False, "global": False, "counties": ["DE-BW", "DE-BY", "DE-ST"], "launchYear": None,
     "types": ["Public"]},
]  # fmt: skip
RATES = {"amount": 1.0, "base": "USD", "date": "2026-01-30", "rates": {"EUR": 0.8412}}
PAPERS = {
    "status": "ok", "message-type": "work-list", "message-version": "1.0.0",
    "message": {"total-results": 2, "items-per-page": 2, "items": [
        {"DOI": "10.1000/1", "title": ["People in the loop"], "container-title": ["Journal of Loops"],
         "author": [{"given": "Ann", "family": "Berg", "sequence": "first"}, {"name": "The Loop Group"}],
         "issued": {"date-parts": [[2024, 5]]}, "URL": "https://doi.org/10.1000/1", "type": "journal-article"},
        {"DOI": "10.1000/2", "issued": {"date-parts": [[None]]}, "URL": "https://doi.org/10.1000/2", "type": "book"},
    ]},
}  # fmt: skip
BOOKS = {
    "numFound": 1, "start": 0, "numFoundExact": True,
    "docs": [{"key": "/works/OL1W", "title": "Sourdough", "author_name": ["Ann Berg"], "first_publish_year": 2019,
              "edition_count": 3}],
}  # fmt: skip

ANSWERS: dict[str, Any] = {
    "https://geocoding-api.open-meteo.com/v1/search": {"results": [PLACE], "generationtime_ms": 0.6},
    "https://api.open-meteo.com/v1/forecast": FORECAST,
    "https://api.sunrise-sunset.org/json": SUN,
    "https://en.wikipedia.org/w/api.php": ARTICLE,
    "https://hn.algolia.com/api/v1/search": STORIES,
    "https://api.github.com/repos/django/django": REPOSITORY,
    "https://api.worldbank.org/v2/country/IE/indicator/SP.POP.TOTL": PEOPLE,
    "https://api.worldbank.org/v2/country/IE": COUNTRY,
    "https://date.nager.at/api/v3/PublicHolidays/2026/": HOLIDAYS,
    "https://api.frankfurter.dev/v1/": RATES,
    "https://api.crossref.org/works": PAPERS,
    "https://openlibrary.org/search.json": BOOKS,
}
