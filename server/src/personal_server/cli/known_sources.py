"""Which sources there are, asked of the process that reads exports.

Rule: readers of other packages are imported there only; this process sees what they declare.
"""

from __future__ import annotations

from msgspec.structs import replace

from pdpp_kernel.errors import InvalidDeclaration
from pdpp_mcp_server.commands.failures_shown import CommandError, failure_of
from pdpp_sources.common.errors import ExportError
from pdpp_sources.reader_messages import KnownSource, KnownSources, UnusableReader
from pdpp_sources.reader_process import ReaderProcess
from personal_server.domain.declaration_document import parse_declaration


def known_sources(reader: ReaderProcess) -> KnownSources:
    """All sources, those of other packages among them, and what no import would take.

    Raises: CommandError (`unavailable`).
    """
    try:
        return _judged(reader.sources())
    except ExportError:
        raise CommandError(
            "unavailable",
            "The process that reads exports ended while it loaded readers of other packages.",
            "Remove the package that you installed last, or name a source with --as.",
        ) from None


def _judged(found: KnownSources) -> KnownSources:
    """Readers of packages whose declaration the import would refuse count as unusable."""
    usable, unusable = list[KnownSource](), [*found.unusable]
    for source in found.sources:
        if source.package and (fault := _fault(source)):
            unusable.append(UnusableReader(source.connector_key, source.package, fault))
        else:
            usable.append(source)
    return replace(found, sources=usable, unusable=unusable)


def _fault(source: KnownSource) -> str:
    """What is wrong with a declaration, each with its place; nothing, where it can be used."""
    try:
        parse_declaration(source.declaration)
    except InvalidDeclaration as error:
        errors = failure_of(error).errors
        wrong = "; ".join(f"{each['path'] or '/'}: {each['message']}" for each in errors)
        return f"its declaration is refused: {wrong}"
    return ""
