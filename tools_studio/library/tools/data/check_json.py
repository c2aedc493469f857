import re
from typing import Any

TYPES = ["string", "integer", "number", "boolean", "object", "array", "null"]
KNOWN = (
    "type enum required properties additionalProperties items minimum maximum minLength maxLength pattern minItems "
    "maxItems title description default"
).split()


def kind(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
    return names.get(type(value), "null")


def check(value: Any, schema: dict[str, Any], place: str) -> list[str]:
    """Everything that is wrong with the value, each with its place."""
    unknown = [word for word in schema if word not in KNOWN]
    if unknown:
        raise ValueError(f"this tool does not know {', '.join(unknown)} in a schema")
    found = types(value, schema, place) or [*sizes(value, schema, place)]
    if isinstance(value, dict):
        found += members(value, schema, place)
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            found += check(item, schema["items"], f"{place}[{number}]")
    return found


def types(value: Any, schema: dict[str, Any], place: str) -> list[str]:
    wanted = schema.get("type", [])
    wanted = wanted if isinstance(wanted, list) else [wanted]
    if any(name not in TYPES for name in wanted):
        raise ValueError(f"type: expected one of {', '.join(TYPES)}")
    is_whole = type(value) is int or (type(value) is float and value == int(value))
    fits = kind(value) in wanted or ("number" in wanted and type(value) is int) or ("integer" in wanted and is_whole)
    if wanted and not fits:
        return [f"{place}: expected {' or '.join(wanted)}, not {kind(value)}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place}: expected one of {', '.join([str(each) for each in schema['enum']])}"]
    return []


def sizes(value: Any, schema: dict[str, Any], place: str) -> list[str]:
    found = []
    if type(value) in (int, float):
        if value < schema.get("minimum", value):
            found.append(f"{place}: expected at least {schema['minimum']}")
        if value > schema.get("maximum", value):
            found.append(f"{place}: expected at most {schema['maximum']}")
    if isinstance(value, str | list):
        least, most = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
        if len(value) < schema.get(least, 0) or len(value) > schema.get(most, len(value)):
            found.append(f"{place}: expected {schema.get(least, 0)} to {schema.get(most, 'any number')} long")
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{place}: expected something like {schema['pattern']}")
    return found


def members(value: dict[str, Any], schema: dict[str, Any], place: str) -> list[str]:
    known = schema.get("properties", {})
    found = [f"{place}.{name} is missing" for name in schema.get("required", []) if name not in value]
    for name, item in value.items():
        if name in known:
            found += check(item, known[name], f"{place}.{name}")
        elif schema.get("additionalProperties", True) is False:
            found.append(f"{place}.{name} is not expected")
    return found


def run(data: dict[str, Any] | list[Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Check JSON against a simple JSON Schema and list everything that does not fit.

    Args:
        data: the JSON to check
        schema: types, enum, required, properties, items, sizes and patterns; what else a schema may have is refused
    """
    problems = check(data, schema, "$")
    return {"valid": not problems, "problems": problems[:100], "count": len(problems)}
