"""Answers held against the description of the API."""

import json
import re
from functools import cache
from typing import Any

from django.urls import resolve
from jsonschema import Draft202012Validator

from hitlchat.api.root import api


@cache
def description() -> dict[str, Any]:
    # As it is served: without what only Python has.
    found: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(), default=str))
    return found


def described(response: Any) -> Any:
    """The answer's JSON, once it is known to be what the description of its operation promises."""
    request = response.wsgi_request
    # `<toolname:tool>` as the description has it: `{tool}`.
    path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", "/" + resolve(request.path_info).route)
    responses = description()["paths"][path][request.method.lower()]["responses"]
    schema = responses[str(response.status_code)]["content"]["application/json"]["schema"]
    found = response.json()
    Draft202012Validator({**schema, "components": description()["components"]}).validate(found)
    return found
