"""`pdpp sources`: what can be imported, as a list or one source in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from pdpp_kernel.source_item import Data
from pdpp_kernel.texts import parse_text
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import unknown_source
from pdpp_mcp_server.commands.tables import console, indented, plain, table, words
from pdpp_sources.reader_messages import KnownSource, KnownSources, UnusableReader
from pdpp_sources.reader_process import RECIPES, CostlyPlaces, ReaderProcess
from personal_server.cli.known_sources import known_sources
from personal_server.cli.server_settings import settings_or_exit
from personal_server.upkeep.ownership import require_own_files

FROM_COLUMNS = "made from your columns"


def sources(
    key: str | None = None, *, json: Annotated[bool, Parameter(negative="")] = False
) -> None:
    """List what can be imported, how to get each export, and what each export contains.

    Parameters
    ----------
    key
        Show one source with all its fields.
    json
        Print JSON.
    """
    folder = settings_or_exit().data_dir
    require_own_files(folder)  # recipes of somebody else describe nothing of ours
    with ReaderProcess(CostlyPlaces(), recipes=folder / RECIPES) as reader:
        all_sources = known_sources(reader)
    try:
        chosen = all_sources.sources if key is None else [known_source(key, all_sources)]
        if json:
            print_json([source_json(source, fields=key is not None) for source in chosen])
        elif key is None:
            print_sources(chosen, console())
        else:
            print_source(chosen[0], console())
    finally:  # also where the source that was asked for is one of these
        for reader_of_others in all_sources.unusable:
            _print_unusable(reader_of_others)
        for recipe in all_sources.unusable_recipes:
            words().print(plain(parse_text(recipe.sentence)), soft_wrap=True)


def known_source(key: str, all_sources: KnownSources) -> KnownSource:
    """The source of that key.  Raises: CommandError (`usage`)."""
    match = next((source for source in all_sources.sources if source.connector_key == key), None)
    if match is None:
        raise unknown_source(source.connector_key for source in all_sources.sources)
    return match


def print_sources(chosen: Sequence[KnownSource], out: Console) -> None:
    """Each source with its streams and the way to its export."""
    for source in chosen:
        _print_head(source, out)
        names = ", ".join(stream["name"] for stream in source.declaration["streams"])
        indented(f"Kinds of records (streams): {names or FROM_COLUMNS}", 2, out)
        indented(f"How to get this export: {source.how_to_export}", 2, out)
        out.print()
    out.print(
        "`pdpp sources KEY` shows all fields of one source, `pdpp import PATH` imports an export."
    )


def print_source(source: KnownSource, out: Console) -> None:
    """One source with the way to its export and every field of its streams."""
    _print_head(source, out)
    indented(f"How to get this export: {source.how_to_export}", 2, out)
    for stream in source.declaration["streams"]:
        display = stream["display"]
        out.print()
        label = plain(f": {display['label']}")
        indented(Text.assemble((plain(stream["name"]).plain, "bold"), label), 2, out)
        indented(display["detail"], 2, out)
        properties: Data = stream["schema"]["properties"]
        rows = [
            (n, member.get("description") or "identifies the record")
            for n, member in properties.items()
        ]
        out.print(Padding(table(("field", "meaning"), rows), (0, 0, 0, 4), expand=False))
    if not source.declaration["streams"]:
        indented(f"Streams: {FROM_COLUMNS}", 2, out)


def _print_head(source: KnownSource, out: Console) -> None:
    display = source.declaration["display"]
    out.print(Text.assemble((source.connector_key, "bold"), "  ", plain(display["name"])))
    indented(display["detail"], 2, out)
    if source.package is not None:
        indented(f"Its files are read by the installed package {source.package}", 2, out)
    if source.recipe is not None:
        indented(f"Its files are read by your recipe {source.recipe}", 2, out)


def _print_unusable(reader: UnusableReader) -> None:
    """A reader of another package that cannot be used, and why."""
    sentence = f"The reader {reader.name} of the package {reader.package} cannot be used"
    words().print(plain(f"{sentence}: {reader.fault}"), soft_wrap=True)


def source_json(source: KnownSource, *, fields: bool = False) -> Data:
    """One source for programs."""
    display = source.declaration["display"]
    streams: list[Data] = []
    for stream in source.declaration["streams"]:
        document: Data = {"name": stream["name"], "label": stream["display"]["label"]}
        if fields:
            properties = stream["schema"]["properties"].items()
            document["detail"] = stream["display"]["detail"]
            document["fields"] = {name: facts.get("description") for name, facts in properties}
        streams.append(document)
    from_package = {} if source.package is None else {"package": source.package}
    return {
        "connector_key": source.connector_key,
        "name": display["name"],
        "detail": display["detail"],
        "how_to_export": source.how_to_export,
        "streams": streams,
        **from_package,
        **({} if source.recipe is None else {"recipe": source.recipe}),
    }
