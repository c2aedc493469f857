"""What the schemas of tools have beyond the plain types of JSON."""

from typing import Any

Schema = dict[str, Any]

DECIMAL_PATTERN = r"^-?[0-9]{1,28}(\.[0-9]{1,28})?$"
