"""What can be imported: a list, and one source in full, for people and for programs."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from personal_server.cli.tables import indented, table
from personal_server.domain.source_item import Data
from personal_server.sources.common.source import Source
from personal_server.sources.registry import SOURCES

FROM_COLUMNS = "made from your columns"


def print_sources(out: Console) -> None:
    """Each source with its streams and the way to its export."""
    for source in SOURCES:
        _print_head(source, out)
        names = ", ".join(stream["name"] for stream in source.declaration["streams"])
        indented(f"Streams: {names or FROM_COLUMNS}", 2, out)
        indented(f"How to get it: {source.how_to_export}", 2, out)
        out.print()
    out.print("`pdpp sources KEY` shows all fields of one, `pdpp import PATH` imports.")


def print_source(source: Source, out: Console) -> None:
    """One source with the way to its export and every field of its streams."""
    _print_head(source, out)
    indented(f"How to get it: {source.how_to_export}", 2, out)
    for stream in source.declaration["streams"]:
        display = stream["display"]
        out.print()
        indented(Text.assemble((stream["name"], "bold"), f": {display['label']}"), 2, out)
        indented(display["detail"], 2, out)
        rows = [(field, _about(facts)) for field, facts in stream["schema"]["properties"].items()]
        out.print(Padding(table(("field", "what it is"), rows), (0, 0, 0, 4), expand=False))
    if not source.declaration["streams"]:
        indented(f"Streams: {FROM_COLUMNS}", 2, out)


def _print_head(source: Source, out: Console) -> None:
    display = source.declaration["display"]
    out.print(Text.assemble((source.connector_key, "bold"), "  ", display["name"]))
    indented(display["detail"], 2, out)


def _about(facts: Data) -> str:
    return facts.get("description") or "names the record"


def source_json(source: Source, *, fields: bool = False) -> Data:
    """The same for programs."""
    display = source.declaration["display"]
    streams: list[Data] = []
    for stream in source.declaration["streams"]:
        told: Data = {"name": stream["name"], "label": stream["display"]["label"]}
        if fields:
            properties = stream["schema"]["properties"].items()
            told["detail"] = stream["display"]["detail"]
            told["fields"] = {name: facts.get("description") for name, facts in properties}
        streams.append(told)
    return {
        "connector_key": source.connector_key,
        "name": display["name"],
        "detail": display["detail"],
        "how_to_export": source.how_to_export,
        "streams": streams,
    }
