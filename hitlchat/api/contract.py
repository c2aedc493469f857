"""The contract's common parts, for every body, answer and page of the API: camelCase outside, our names inside."""

from typing import Annotated, Any, Literal, Self, TypeVar

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from pydantic import (
    AfterValidator,
    AliasGenerator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)
from pydantic.alias_generators import to_camel

from hitlchat.base.canonical import storable

Row = TypeVar("Row", bound=Model)
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
Flag = Annotated[bool, BeforeValidator(bool)]
Limit = Annotated[int, Field(ge=1, le=200)]
# Of what has a name, such as a group, and of a person; a text is one already.
Name = Annotated[str, BeforeValidator(lambda thing: getattr(thing, "name", thing))]
Username = Annotated[str, BeforeValidator(lambda person: person.get_username() if isinstance(person, User) else person)]


class Body(BaseModel):
    """Strict: unknown fields are refused, and nothing is coerced (SR-13)."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)

    def given(self, *but: str) -> dict[str, Any]:
        """Return the fields that were sent, without `but`, with tuples in place of lists, as drafts have them."""
        sent = {name: getattr(self, name) for name in self.model_fields_set - {*but}}
        return {name: tuple(value) if isinstance(value, list) else value for name, value in sent.items()}


class Shape(BaseModel):
    """An answer, read from the attributes of a row by the names of its fields, or from where `read` says."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(serialization_alias=to_camel),
        from_attributes=True,
        validate_by_name=True,
        frozen=True,
    )

    @classmethod
    def of(cls, row: object, **more: Any) -> Self:
        """Return an answer made of the row's attributes; those in `more` come first."""
        return cls.model_validate(_Extended(row, more))


class _Extended:
    """A row with further attributes, which hide its own."""

    def __init__(self, row: object, more: dict[str, Any]) -> None:
        vars(self).update(more, _row=row)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)


def examples(*bodies: Object) -> ConfigDict:
    """Return the configuration of a body whose description shows these."""
    return ConfigDict(json_schema_extra={"examples": [*bodies]})


def read(path: str, description: str | None = None) -> Any:
    """Return a field of a shape whose value the row has elsewhere: `path` leads over attributes and keys."""
    return Field(validation_alias=AliasPath(*path.split(".")), description=description)


class Page(BaseModel):
    limit: Limit = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0

    def cut(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        return rows[self.offset : self.offset + self.limit]
