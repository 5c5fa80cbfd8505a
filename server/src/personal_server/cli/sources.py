"""`pdpp sources`: what can be imported, as a list or one source in full."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.exits import print_json, unknown_source
from pdpp_mcp_server.commands.tables import console, indented, table
from pdpp_sources.common.source import SourceReader
from pdpp_sources.registry import SOURCES, source_named

FROM_COLUMNS = "made from your columns"


def sources(
    key: str | None = None, *, json: Annotated[bool, Parameter(negative="")] = False
) -> None:
    """List what can be imported, how to get each export, and what it holds.

    Parameters
    ----------
    key
        Show one source with all its fields.
    json
        Print JSON.
    """
    chosen = SOURCES if key is None else (known_source(key),)
    if json:
        print_json([source_json(source, fields=key is not None) for source in chosen])
    elif key is None:
        print_sources(console())
    else:
        print_source(chosen[0], console())


def known_source(key: str) -> SourceReader:
    """The source of that key.  Raises: CommandError (`usage`)."""
    source = source_named(key)
    if source is None:
        raise unknown_source(each.connector_key for each in SOURCES)
    return source


def print_sources(out: Console) -> None:
    """Each source with its streams and the way to its export."""
    for source in SOURCES:
        _print_head(source, out)
        names = ", ".join(stream["name"] for stream in source.declaration["streams"])
        indented(f"Streams: {names or FROM_COLUMNS}", 2, out)
        indented(f"How to get it: {source.how_to_export}", 2, out)
        out.print()
    out.print("`pdpp sources KEY` shows all fields of one, `pdpp import PATH` imports.")


def print_source(source: SourceReader, out: Console) -> None:
    """One source with the way to its export and every field of its streams."""
    _print_head(source, out)
    indented(f"How to get it: {source.how_to_export}", 2, out)
    for stream in source.declaration["streams"]:
        display = stream["display"]
        out.print()
        indented(Text.assemble((stream["name"], "bold"), f": {display['label']}"), 2, out)
        indented(display["detail"], 2, out)
        properties: Data = stream["schema"]["properties"]
        rows = [
            (n, each.get("description") or "names the record") for n, each in properties.items()
        ]
        out.print(Padding(table(("field", "what it is"), rows), (0, 0, 0, 4), expand=False))
    if not source.declaration["streams"]:
        indented(f"Streams: {FROM_COLUMNS}", 2, out)


def _print_head(source: SourceReader, out: Console) -> None:
    display = source.declaration["display"]
    out.print(Text.assemble((source.connector_key, "bold"), "  ", display["name"]))
    indented(display["detail"], 2, out)


def source_json(source: SourceReader, *, fields: bool = False) -> Data:
    """One source for programs."""
    display = source.declaration["display"]
    streams: list[Data] = []
    for stream in source.declaration["streams"]:
        shown: Data = {"name": stream["name"], "label": stream["display"]["label"]}
        if fields:
            properties = stream["schema"]["properties"].items()
            shown["detail"] = stream["display"]["detail"]
            shown["fields"] = {name: facts.get("description") for name, facts in properties}
        streams.append(shown)
    return {
        "connector_key": source.connector_key,
        "name": display["name"],
        "detail": display["detail"],
        "how_to_export": source.how_to_export,
        "streams": streams,
    }
