"""Parameters: what a route accepts, declared once, and the values a request brought for them.

Rule: a declaration drives the parser, the 400s and the OpenAPI document alike; a name that is not
declared is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from personal_server.errors import InvalidRequest, PersonalServerError


class Form(StrEnum):
    """How a parameter is spelled.  Source: RS contract 1.2."""

    SCALAR = "scalar"
    LIST = "list"
    KEYED = "keyed"


class Kind(StrEnum):
    """What a value is."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    INSTANT = "instant"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One query parameter of a route.

    Shapes: `choices` is a closed enumeration; `maximum` refuses, or clamps with a warning where
        `clamps`; `depth` is the number of bracketed keys of a keyed parameter at most; `error` is
        the class for bad values; `empty_is_absent` for names whose empty value counts as not sent;
        `alias_of` is the present name of a deprecated spelling.
    Units: `max_chars` are code points.
    """

    name: str
    description: str
    form: Form = Form.SCALAR
    kind: Kind = Kind.TEXT
    required: bool = False
    default: str | int | bool | None = None
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    clamps: bool = False
    max_chars: int | None = None
    max_items: int | None = None
    depth: int = 1
    error: type[PersonalServerError] = InvalidRequest
    empty_is_absent: bool = False
    alias_of: str | None = None
    example: str | None = None


@dataclass(frozen=True, slots=True)
class KeyedValue:
    """One `name[key]…=value`: `name` as sent, `path` its bracketed keys."""

    name: str
    path: tuple[str, ...]
    value: str


Scalar = str | int | bool


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parsed parameters of a request, defaults filled in, aliases resolved.

    `warnings` are wire warnings that parsing gave rise to (clamped limits, deprecated names);
    `sent` are the names that the caller wrote, in their present spelling.
    """

    scalars: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    keyed_values: Mapping[str, tuple[KeyedValue, ...]] = field(
        default_factory=dict[str, tuple[KeyedValue, ...]]
    )
    sent: frozenset[str] = frozenset()
    warnings: tuple[dict[str, object], ...] = ()

    def text(self, name: str) -> str | None:
        """A text parameter, or `None` if absent."""
        value = self.scalars.get(name)
        return None if value is None else str(value)

    def integer(self, name: str) -> int | None:
        """An integer parameter, or `None` if absent."""
        value = self.scalars.get(name)
        return value if isinstance(value, int) else None

    def flag(self, name: str) -> bool:
        """A boolean parameter; absent is false."""
        return self.scalars.get(name) is True

    def names(self, name: str) -> tuple[str, ...]:
        """A list parameter without duplicates; absent is empty."""
        return self.lists.get(name, ())

    def keyed(self, name: str) -> tuple[KeyedValue, ...]:
        """All values of a keyed parameter, in the order sent."""
        return self.keyed_values.get(name, ())


def by_name(parameters: Iterable[Parameter]) -> Mapping[str, Parameter]:
    """The parameters of a route by name."""
    return {parameter.name: parameter for parameter in parameters}


SELECTORS: tuple[Parameter, ...] = (
    Parameter(
        "connection_id",
        "Reads one connection only.",
        empty_is_absent=True,
        example="cin_diary000000000",
    ),
    Parameter(
        "connector_instance_id",
        "Deprecated spelling of `connection_id`.",
        empty_is_absent=True,
        alias_of="connection_id",
    ),
    Parameter(
        "connector_id",
        "Reads the connections of one source only: its connector key or its URI.",
        empty_is_absent=True,
        example="journal",
    ),
)
CURSOR = Parameter("cursor", "Continues a list; opaque.", empty_is_absent=True)


def page_limit(default: int, maximum: int) -> Parameter:
    """The `limit` of a list: above its maximum it is clamped."""
    return Parameter(
        "limit",
        f"How many items a page holds; above {maximum} it is clamped with a warning.",
        kind=Kind.INTEGER,
        default=default,
        minimum=1,
        maximum=maximum,
        clamps=True,
    )
