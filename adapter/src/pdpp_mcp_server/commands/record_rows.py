"""Answers as rows of a table at the terminal: what stands in which column, and what has room.

Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from pdpp_mcp_server.commands.tables import plain
from pdpp_mcp_server.rs_client.json_values import Json, as_object, as_text, compact, objects_in

CELL_CHARS = 12  # the least that a column is good for
CAPABILITIES = "operators"
NOT_GRANTED = "g=false"
WHOLE = frozenset({"id", "stream", "at", "from", "to"})


def record_row(item: Json) -> Json:
    """A record's or a hit's members as one row."""
    if item.get("object") != "search_result":
        return {"id": item.get("id"), **as_object(item.get("data"))}
    excerpts = objects_in(item.get("evidence_excerpts"))
    found = next((as_text(each.get("preview_text")) for each in excerpts), None)
    return {
        "stream": item.get("stream"),
        "id": item.get("id"),
        "title": item.get("title"),
        "text": found,
        "at": item.get("authored_at"),
        "author": item.get("author"),
    }


def table_of_rows(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Table:
    """A row a line: what is too long for its column is cut, but for what one copies."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    longest = [
        max(len(name), *(len(row[place]) for row in rows)) for place, name in enumerate(columns)
    ]
    whole = [place for place, name in enumerate(columns) if name in WHOLE]
    room = width - sum(longest[place] for place in whole) - 2 * len(columns)
    shrinking = sorted(set(range(len(columns))) - set(whole), key=lambda place: longest[place])
    for waiting, place in zip(range(len(shrinking), 0, -1), shrinking, strict=True):
        longest[place] = max(1, min(longest[place], room // waiting))
        room -= longest[place]
    for name, size in zip(columns, longest, strict=True):
        folds = name == CAPABILITIES
        made.add_column(
            name, width=size, overflow="fold" if folds else "ellipsis", no_wrap=not folds
        )
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def columns_of(rows: Iterable[Json]) -> list[str]:
    """Every name that has a value somewhere, in the order of their coming."""
    return list(dict.fromkeys(n for row in rows for n, value in row.items() if value is not None))


def fitting_columns(rows: Sequence[Json], width: int) -> tuple[list[str], list[str]]:
    """The columns that a line of this width has room for, and those that it has not."""
    kept: list[str] = []
    left: list[str] = []
    for name in columns_of(rows):
        longest = max(len(cell_text(row.get(name))) for row in rows)
        longest = max(len(name), longest)
        width -= 2 + (longest if name in WHOLE else min(longest, CELL_CHARS))
        (kept if width >= 0 or not kept else left).append(name)
    return kept, left


def cell_text(value: object) -> str:
    """A value on one line, without what could steer a terminal."""
    if value is None:
        return ""
    return plain(value if isinstance(value, str) else compact(value)).plain


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


def group_row(group: Json) -> Json:
    """A group of an aggregate."""
    key = group.get("label") or group.get("key")
    then = group.get("then_label") or group.get("then")
    return {"group": key, "then": then, "count": group.get("count"), "value": group.get("value")}


def text_lines(text: str) -> Text:
    """Foreign text with its line breaks, and no other control character."""
    return Text("".join(c if c.isprintable() or c == "\n" else " " for c in text))
