"""Parameters: what a route accepts, declared once, and the values a request brought for them.

Rule: a declaration drives the parser, the 400s and the OpenAPI document alike; a name that is not
declared is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from pdpp_kernel.errors import InvalidRequest, PersonalServerError
from personal_server.domain.answer_warnings import Warning


class Form(StrEnum):
    """How a parameter is spelled.  Source: docs/contract/resource-server.md 1.2."""

    SCALAR = "scalar"
    LIST = "list"
    KEYED = "keyed"


class Kind(StrEnum):
    """What a value is."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    INSTANT = "instant"


class Parameter(msgspec.Struct, frozen=True):
    """One query parameter of a route.

    Shapes: `choices` is a closed enumeration; `maximum` refuses, or clamps with a warning where
        `clamps`; `depth` is the number of bracketed keys of a keyed parameter at most; with a last
        key of `repeated` one may be sent several times; `error` is the class for bad values;
        `empty_is_absent` for names whose empty value counts as not sent; `alias_of` is the present
        name of a deprecated spelling.
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
    repeated: tuple[str, ...] = ()
    error: type[PersonalServerError] = InvalidRequest
    empty_is_absent: bool = False
    alias_of: str | None = None
    example: str | None = None


class KeyedValue(msgspec.Struct, frozen=True):
    """One `name[key]…=value`: `name` as sent, `path` its bracketed keys."""

    name: str
    path: tuple[str, ...]
    value: str


class Parameters(msgspec.Struct, frozen=True):
    """The parsed parameters of a request, defaults filled in, aliases resolved.

    Shapes: each by name, and absent where nothing was sent and there is no default; `lists` without
        duplicates, `keyed` in the order sent.  `warnings` are those that parsing gave rise to
        (clamped limits, deprecated names); `sent` are the names that the caller wrote, in their
        present spelling.
    """

    texts: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    integers: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    flags: Mapping[str, bool] = msgspec.field(default_factory=dict[str, bool])
    lists: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    keyed: Mapping[str, tuple[KeyedValue, ...]] = msgspec.field(
        default_factory=dict[str, tuple[KeyedValue, ...]]
    )
    sent: frozenset[str] = frozenset()
    warnings: tuple[Warning, ...] = ()


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
