"""The contract's common parts, for every body, answer and page of the API: camelCase outside, our names inside."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from hitlchat.base.canonical import storable

Object = dict[str, Any]
CallerName = Literal["chat", "studio", "api", "mcp"]
HitlModeName = Literal["REQUIRED", "CONDITIONAL", "DISABLED"]


def _storable(text: str) -> str:
    if storable(text) != text:
        raise ValueError("it contains a character that cannot be kept, such as U+0000")
    return text


STORABLE = AfterValidator(_storable)
Text = Annotated[str, STORABLE]
Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), STORABLE]
Limit = Annotated[int, Field(ge=1, le=200)]


class Body(BaseModel):
    """Strict: nothing unknown is let pass, nothing is coerced (SR-13)."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)


class Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True)

    @classmethod
    def of(cls, row: object, **more: Any) -> Self:
        """Return the row's attributes by their names, with `more` in place of those that differ."""
        same = cls.model_fields.keys() - more.keys()
        return cls(**{name: getattr(row, name) for name in same}, **more)


class Page(BaseModel):
    limit: Limit = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
