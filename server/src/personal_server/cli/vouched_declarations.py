"""Whether a source that is to be declared anew is declared as the program declares it.

Rule: a confined process that read a stranger's file is not believed where it declares a source of
the program anew, since limits of accesses depend on the declaration: a fresh process that has read
nothing is asked.
"""

from __future__ import annotations

from pdpp_kernel.source_item import Data
from pdpp_sources.common.errors import ExportReaderFailed
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess


def vouch(connector_key: str, content: Data) -> None:
    """Refuse a declaration of a source of the program, or of a package, that is not its own.

    What no reader in code declares, a table or a recipe does, which are as their files say.
    Raises: ExportReaderFailed; ExportTooCostly where a package ends the process.
    """
    with ReaderProcess(CostlyPlaces()) as unread:
        sources = {each.connector_key: each for each in unread.sources().sources}
    known = sources.get(connector_key)
    if known is not None and known.declaration != content:
        raise ExportReaderFailed(
            "The reader declared its source otherwise than the program does.",
            "Import the file again. Report the error if it comes again.",
        )
