"""Answers as rows of a table at the terminal: what stands in which column, and what has room.

Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from pdpp_mcp_server.commands.quiet_texts import quiet_lines, quiet_text
from pdpp_mcp_server.rs_client.json_values import Json, as_object, compact, objects_in

CELL_CHARS = 20  # the least that a column is good for
CAPABILITIES = "operators"
NOT_GRANTED = "g=false"
_TITLE = "role=primary-title"
WHOLE = frozenset({"id", "when", "stream", "records", "from", "to"})
FOLDED = frozenset({CAPABILITIES, "account", "on pages"})  # names go on in the next line
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{5,18}Z")
KEY = "id"  # what one needs to open a record has room first


def record_row(item: Json, titles: Collection[str] = ()) -> Json:
    """A record as a row: when and its title first, what identifies it and its neighbours last."""
    data = as_object(item.get("data"))
    ids = {name: value for name, value in data.items() if name.endswith("_id")}
    times = {n: v for n, v in data.items() if n.endswith("_at") or _is_instant(v)}
    values = {n: v for n, v in data.items() if n not in ids and n not in times and n != "id"}
    # where days are those of UTC, an answer says no local time
    dated = sorted(times.items(), key=lambda each: not each[0].endswith("_at"))
    first = next((v for _, v in dated if isinstance(v, str)), "")
    when = item.get("when") or utc_minute(first) or None
    named = {name: values[name] for name in titles if name in values}
    return {"when": when, **named, **values, **times, **ids, "id": item.get("id")}


def _is_instant(value: object) -> bool:
    return isinstance(value, str) and _INSTANT.fullmatch(value) is not None


def utc_minute(instant: str) -> str:
    """`Wed 2024-03-13 22:05 UTC`; what is no instant in UTC stays as it is."""
    if not instant.endswith("Z"):
        return instant
    try:
        at = datetime.fromisoformat(instant)
    except ValueError:
        return instant
    return f"{at:%a %Y-%m-%d %H:%M} UTC"


def table_of_rows(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Table:
    """A row a line: what is too long for its column is cut, but for what one copies, and names."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    longest = [
        max(len(name), *(len(row[column]) for row in rows)) for column, name in enumerate(columns)
    ]
    whole = [column for column, name in enumerate(columns) if name in WHOLE]
    room = width - sum(longest[column] for column in whole) - 2 * len(columns)
    shrinking = sorted(set(range(len(columns))) - set(whole), key=lambda column: longest[column])
    for waiting, column in zip(range(len(shrinking), 0, -1), shrinking, strict=True):
        longest[column] = max(1, min(longest[column], room // waiting))
        room -= longest[column]
    for name, size in zip(columns, longest, strict=True):
        folds = name in FOLDED
        made.add_column(
            name, width=size, overflow="fold" if folds else "ellipsis", no_wrap=not folds
        )
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def columns_of(rows: Iterable[Json]) -> list[str]:
    """Every name that has a value somewhere, in the order of their coming."""
    rows = list(rows)
    valued = {name for row in rows for name, value in row.items() if value not in (None, "", [])}
    return [name for name in dict.fromkeys(n for row in rows for n in row) if name in valued]


def fitting_columns(rows: Sequence[Json], width: int) -> tuple[list[str], list[str]]:
    """The columns that a line of this width has room for, and those that it has not."""
    columns = columns_of(rows)
    kept: set[str] = set()
    for name in sorted(columns, key=lambda name: name != KEY):
        longest = max(len(name), *(len(cell_text(row.get(name))) for row in rows))
        width -= 2 + (longest if name in WHOLE else min(longest, CELL_CHARS))
        if width >= 0 or not kept:
            kept.add(name)
    return [n for n in columns if n in kept], [n for n in columns if n not in kept]


def asked_columns(rows: Sequence[Json], asked: Sequence[str], width: int) -> tuple[list[str], int]:
    """The columns with all that were asked for, and the width that they take, or that there is.

    Rule: what was asked for is cut or goes beyond the line, but is there.
    """
    wanted = {*asked, *columns_of(rows)}
    columns = [name for name in dict.fromkeys(n for row in rows for n in row) if name in wanted]
    least = 0
    for name in columns:
        longest = max(len(name), *(len(cell_text(row.get(name))) for row in rows))
        room = longest if name in WHOLE else min(longest, max(len(name), CELL_CHARS))
        least += 2 + room
    return columns, max(width, least)


def cell_text(value: object) -> str:
    """A value on one line, without what could steer a terminal."""
    if value is None:
        return ""
    return quiet_text(value if isinstance(value, str) else compact(value))


def stream_rows(connector: Json) -> Iterator[Json]:
    """The streams of a connector of `/v1/schema?view=compact`."""
    for stream in objects_in(connector.get("streams")):
        visible = as_object(stream.get("visible"))
        records = visible.get("records")
        fields = as_object(stream.get("field_capabilities"))
        yield {
            "stream": stream.get("name"),
            "source": connector.get("connector_key"),
            "records": f"{records}+" if visible.get("more") else records,
            "from": visible.get("earliest"),
            "to": visible.get("latest"),
            "fields": sum(NOT_GRANTED not in str(each).split(",") for each in fields.values()),
            "field_capabilities": fields,
        }


def field_rows(stream: Json) -> Iterator[Json]:
    """The fields of a stream, and how each can be used."""
    for name, flags in as_object(stream.get("field_capabilities")).items():
        able = "not granted" if NOT_GRANTED in str(flags).split(",") else flags
        yield {"field": name, "source": stream.get("source"), CAPABILITIES: able}


def titles_of(body: Json) -> list[str]:
    """The fields that are titles of the streams of `/v1/schema?view=compact`, in its order."""
    streams = (s for each in objects_in(body.get("connectors")) for s in stream_rows(each))
    fields = (f for each in streams for f in each["field_capabilities"].items())
    return [name for name, flags in dict(fields).items() if _TITLE in str(flags).split(",")]


def group_row(group: Json) -> Json:
    """A group of an aggregate."""
    key = group.get("label") or group.get("key")
    then = group.get("then_label") or group.get("then")
    return {"group": key, "then": then, "count": group.get("count"), "value": group.get("value")}


def text_lines(text: str) -> Text:
    """Foreign text with its line breaks, and no other control character."""
    return Text(quiet_lines(text))
