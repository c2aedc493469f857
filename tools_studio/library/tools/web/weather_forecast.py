from typing import Annotated, Any

from hitl import fetch

# what the WMO calls the codes
WORDS = {
    0: "clear", 1: "mostly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "freezing fog",
    51: "light drizzle", 53: "drizzle", 55: "heavy drizzle", 56: "freezing drizzle", 57: "freezing drizzle",
    61: "light rain", 63: "rain", 65: "heavy rain", 66: "freezing rain", 67: "freezing rain", 71: "light snow",
    73: "snow", 75: "heavy snow", 77: "snow grains", 80: "light showers", 81: "showers", 82: "violent showers",
    85: "snow showers", 86: "heavy snow showers", 95: "thunderstorm", 96: "thunderstorm with hail",
    99: "thunderstorm with heavy hail",
}  # fmt: skip


def ask(url: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = fetch(url, params=params)
    if answer["status"] != 200 or not isinstance(answer["json"], dict):
        raise ValueError(f"open-meteo.com answered with status {answer['status']}")
    return answer["json"]


def find(place: str) -> dict[str, Any]:
    params = {"name": place.strip(), "count": 1, "language": "en", "format": "json"}
    results = ask("https://geocoding-api.open-meteo.com/v1/search", params).get("results", [])
    if not results:
        raise ValueError(f"there is no place called {place!r}")
    return results[0]


def run(place: str, days: Annotated[int, {"minimum": 1, "maximum": 14}] = 3) -> dict[str, Any]:
    """Tell the weather in a town now and for the next days.

    Args:
        place: the town, such as Lisbon
        days: for how many days, today included
    """
    where = find(place)
    params = {
        "latitude": where["latitude"],
        "longitude": where["longitude"],
        "current": "temperature_2m,relative_humidity_2m,wind_speed_10m,weather_code",
        "daily": "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum",
        "timezone": "auto",
        "forecast_days": days,
    }
    answer = ask("https://api.open-meteo.com/v1/forecast", params)
    now, daily = answer["current"], answer["daily"]
    return {
        "place": f"{where['name']}, {where.get('country', '')}".strip(", "),
        "now": {
            "weather": WORDS.get(now["weather_code"], "unknown"),
            "temperature": now["temperature_2m"],
            "humidity": now["relative_humidity_2m"],
            "wind": now["wind_speed_10m"],
        },
        "days": [
            {
                "date": day,
                "weather": WORDS.get(daily["weather_code"][n], "unknown"),
                "lowest": daily["temperature_2m_min"][n],
                "highest": daily["temperature_2m_max"][n],
                "rain_mm": daily["precipitation_sum"][n],
            }
            for n, day in enumerate(daily["time"])
        ],
        "units": "°C, km/h, percent",
    }
