"""What a source declares: whose it is, its streams, and how a stored declaration was adapted.

Rule: as of a stream (`declaration`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pdpp_kernel.declaration import Stream
from pdpp_kernel.unprinted import Unprinted


class Adaptation(msgspec.Struct, frozen=True):
    """What is read otherwise than it was written: where (a JSON Pointer), and how."""

    path: str
    message: str


# Connector keys of declarations that were made from a file.
OWN_FILE_PREFIX = "table-"


class SourceDeclaration(Unprinted, frozen=True):
    """The versioned description of a source.

    Shapes: `raw` is the accepted JSON object; `digest` is `sha256:<hex>` over its minimal JSON
        text (member order kept), so that white space is no other content; `kept` are the places of
        members that are stored and not interpreted.
    """

    source_kind: str
    source_id: str
    connector_key: str
    version: str
    display_name: str
    streams: Mapping[str, Stream]
    raw: Mapping[str, object]
    digest: str = ""
    display_detail: str | None = None
    publisher_id: str | None = None
    maximum_staleness_seconds: int | None = None
    kept: tuple[str, ...] = ()
    adapted: tuple[Adaptation, ...] = ()

    @property
    def is_of_own_file(self) -> bool:
        """Whether it was made from a table of the owner's, whose names are personal (C33)."""
        return self.connector_key.startswith(OWN_FILE_PREFIX)
