"""Files that may be shown as an image: which, and what is said of one that is not.

Source: docs/contract/mcp-adapter.md 10.5. An image is shown as it is or not at all.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from pdpp_mcp_server import contract
from pdpp_mcp_server.faces.truncation import BinaryFacts, binary_facts
from pdpp_mcp_server.rs_client.json_values import Json

SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
NO_FILE = "these fields hold no file; one that came with the record is a record that expand lists"
NO_IMAGE = "no PNG, JPEG, GIF or WebP"
TOO_LARGE = f"larger than {contract.IMAGE_BYTES:,} bytes"


class FileField(msgspec.Struct, frozen=True):
    """A field that holds a file."""

    name: str
    value: Any
    facts: BinaryFacts


def is_image(facts: BinaryFacts) -> bool:
    """Whether bytes are said to be an image; of those within a record nothing may be said."""
    return facts.blob_id is None or facts.mime_type.startswith("image/")


def may_be_shown(facts: BinaryFacts) -> bool:
    """Whether a file may be a small image, by what its record says."""
    return is_image(facts) and (facts.size_bytes or 0) <= contract.IMAGE_BYTES


def file_in(payload: Mapping[str, Any]) -> FileField | None:
    """The first file that may be shown; without one the first there is."""
    found = (FileField(name, v, facts) for name, v in payload.items() if (facts := binary_facts(v)))
    files = list(found)
    small = (file for file in files if may_be_shown(file.facts))
    return next(small, files[0] if files else None)


def image_type(content: bytes) -> str | None:
    """The kind of an image that hosts show, by how its bytes begin, whatever it is said to be."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begin, kind in SIGNATURES.items() if content.startswith(begin)), None)


def shown(field_path: str, mime_type: str) -> Json:
    """What the document says of an image that stands beside it."""
    return {"field_path": field_path, "status": "shown", "mime_type": mime_type}


def not_shown(why: str, file: FileField | None = None) -> Json:
    """What the document says instead of an image; its ladder says where the bytes are."""
    named = {"field_path": file.name} if file else {}
    return {**named, "status": "not_shown", "why": why}
