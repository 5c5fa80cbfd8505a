"""What a read at the terminal asks for: rows, groups, words, and how they are printed.

Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from pdpp_kernel.operators import Operator
from pdpp_mcp_server.commands.connect import CacheRoot
from pdpp_mcp_server.commands.failures_shown import CommandError

Sort = Literal["relevance", "newest", "oldest"]
Mode = Literal["auto", "words", "meaning", "hybrid"]
ROWS = 25
SIGNS: Mapping[str, str] = {
    each.sign: "" if each is Operator.EQ else each.value for each in Operator if each.sign
}
CONDITION = re.compile(r"([^=<>!~\[\]]+)(?:\[(\w+)\])?(!=|>=|<=|=|>|<|~)(.*)", re.DOTALL)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFlags:
    """Of which connection, and how it is printed.

    Parameters
    ----------
    connection
        Only this account, by its id; your own also by name.
    json
        Print the whole answer as JSON.
    jsonl
        Print each row as a line of JSON.
    """

    connection: str | None = None
    json: Annotated[bool, Parameter(negative="")] = False
    jsonl: Annotated[bool, Parameter(negative="")] = False


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFlags(OutputFlags):
    """Which server is asked, of which connection, and how it is printed.

    Parameters
    ----------
    provider_url
        Address of the server. Default: the only one that is connected here.
    cache_root
        The folder with the saved credentials.
    connection
        Only this account, by connection id.
    json
        Print the whole answer as JSON.
    jsonl
        Print each row as a line of JSON.
    """

    provider_url: str | None = None
    cache_root: CacheRoot = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RowFlags:
    """Which rows.

    Parameters
    ----------
    where
        A condition on a field: `label=INBOX`, `amount>=10`, `subject~invoice`, `label[in]=a`.
        Repeatable; a record must meet all of them.
    since
        Only records from this time on: `2026-08-01` or `2026-08-01T09:30`, by the owner's clock.
    until
        Only records before this time.
    limit
        How many records to show. Default: 25.
    all
        Show all records.
    """

    where: list[str] | None = None
    since: str | None = None
    until: str | None = None
    limit: Annotated[int, Parameter(validator=Number(gte=1))] = ROWS
    all: Annotated[bool, Parameter(negative="")] = False

    def asked(self) -> list[tuple[str, str]]:
        """As parameters of a request.  Raises: CommandError (`usage`)."""
        times = [("since", self.since), ("until", self.until)]
        return [*_conditions(self.where or ()), *((n, v) for n, v in times if v is not None)]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFlags:
    """Which records, in which groups.

    Parameters
    ----------
    where
        A condition on a field, as in `pdpp read query`. Repeatable.
    by
        Make a group for each value of this field.
    then_by
        Within each group, make a group for each value of this field.
    by_time
        Make a group for each month of this time field.
    granularity
        With a time field: the unit of its groups (minute, hour, day, week, month, quarter, year,
        hour_of_day or weekday).
    time_zone
        The time zone of days and groups, such as Europe/Rome. Default: the owner's.
    limit
        How many groups to show.
    """

    where: list[str] | None = None
    by: str | None = None
    then_by: str | None = None
    by_time: str | None = None
    granularity: str = "month"
    time_zone: str | None = None
    limit: int | None = None

    def asked(self) -> list[tuple[str, str]]:
        """As parameters of a request.  Raises: CommandError (`usage`)."""
        return [
            *_conditions(self.where or ()),
            *given(group_by=self.by, then_by=self.then_by, group_by_time=self.by_time),
            *given(granularity=self.granularity if self.by_time else None),
            *given(limit=str(self.limit) if self.limit else None),
        ]


class SearchTerms(msgspec.Struct, frozen=True):
    """What is looked for."""

    words: str
    streams: tuple[str, ...] = ()
    sort: str | None = None
    mode: str | None = None
    exact: bool = False

    def asked(self) -> list[tuple[str, str]]:
        """As parameters of a request."""
        streams = [("streams", each) for each in self.streams]
        exact = "true" if self.exact else None
        return [("q", self.words), *streams, *given(sort=self.sort, mode=self.mode, exact=exact)]


def _conditions(where: Iterable[str]) -> list[tuple[str, str]]:
    made: list[tuple[str, str]] = []
    for condition in where:
        parts = CONDITION.fullmatch(condition)
        if parts is None or (parts[2] and parts[3] != "="):
            raise CommandError(
                "usage",
                "Not a valid condition.",
                "Write field=value, field>=value, field~words, or field[in]=value.",
            )
        operator = parts[2] or SIGNS[parts[3]]
        named = f"filter[{parts[1].strip()}]" + (f"[{operator}]" if operator else "")
        made.append((named, parts[4]))
    return made


def given(**members: str | None) -> list[tuple[str, str]]:
    """Those parameters that have a value."""
    return [(name, value) for name, value in members.items() if value is not None]


def listed(name: str, values: str | None) -> list[tuple[str, str]]:
    """One parameter for each of the values between commas."""
    return [(name, value.strip()) for value in (values or "").split(",") if value.strip()]
