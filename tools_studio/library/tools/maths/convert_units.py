from typing import Any

# what one of each is in metres, kilograms or litres
SCALES = [
    {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0, "in": 0.0254, "ft": 0.3048, "yd": 0.9144, "mi": 1609.344},
    {"g": 0.001, "kg": 1.0, "t": 1000.0, "oz": 0.028349523125, "lb": 0.45359237},
    {"ml": 0.001, "l": 1.0, "gal": 3.785411784},
]
NAMES = [
    "mm millimetre millimeter, cm centimetre centimeter, m metre meter, km kilometre kilometer",
    "in inch inche, ft foot feet, yd yard, mi mile",
    "g gram, kg kilogram kilo, t tonne ton, oz ounce, lb pound",
    "ml millilitre milliliter, l litre liter, gal gallon",
    "c celsius centigrade °c, f fahrenheit °f, k kelvin",
]


def short(unit: str) -> str:
    """The unit's short name: `Miles` is `mi`."""
    word = unit.strip().lower()
    for names in ", ".join(NAMES).split(", "):
        words = names.split()
        if word in words or word.removesuffix("s") in words:
            return words[0]
    return word


def degrees(value: float, unit: str, to: str) -> float:
    celsius = {"c": value, "f": (value - 32) * 5 / 9, "k": value - 273.15}[unit]
    return {"c": celsius, "f": celsius * 9 / 5 + 32, "k": celsius + 273.15}[to]


def run(value: float, from_unit: str, to_unit: str) -> dict[str, Any]:
    """Convert a length, weight, volume or temperature to another unit.

    Args:
        value: how many
        from_unit: the unit it is in, such as km
        to_unit: the unit to convert to, such as miles
    """
    start, goal = short(from_unit), short(to_unit)
    if start in ["c", "f", "k"] and goal in ["c", "f", "k"]:
        return {"value": round(degrees(value, start, goal), 6), "unit": to_unit}
    for scale in SCALES:
        if start in scale and goal in scale:
            return {"value": round(value * scale[start] / scale[goal], 6), "unit": to_unit}
    raise ValueError(f"cannot convert {from_unit} to {to_unit}")
