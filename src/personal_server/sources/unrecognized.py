"""Why no source took an export, as far as a look at it tells, and what its owner can do."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE

from personal_server.sources.errors import ExportNotRecognized, MemberDamaged
from personal_server.sources.export import Export, Member
from personal_server.sources.table_files import looks_like_table

SEE_SOURCES = "See `pdpp sources` for what can be read, or name one with `--as KEY`."
_LOOKED_AT = 100
_WIDE = (BOM_UTF16_LE, BOM_UTF16_BE)


def unrecognized(export: Export) -> ExportNotRecognized:
    """The error that says most."""
    filled = [member for member in export.members if member.size_bytes]
    if not filled and export.refused:
        return ExportNotRecognized(
            f"Nothing in it may be read ({export.refused[0].reason}).",
            "Get the export anew, without a password, as a plain .zip or a folder.",
        )
    if not filled:
        return ExportNotRecognized(
            "There is nothing in it.", "Download or copy the export again, and look into it first."
        )
    if all(member.suffix == ".zip" for member in filled):
        return ExportNotRecognized(
            "It holds only other zip files.", "Unpack it and import the zip files inside."
        )
    heads = [_head(member) for member in filled[:_LOOKED_AT]]
    if not any(heads):
        return ExportNotRecognized(
            "Its files cannot be read.", "Check that your user may read them, or copy them again."
        )
    return _by_content([head for head in heads if head])


def is_wide(member: Member) -> bool:
    """Whether a file is written in UTF-16, which no source reads."""
    return _head(member).startswith(_WIDE)


def is_readable(member: Member) -> bool:
    """Whether its first bytes can be had at all."""
    return bool(_head(member))


def _head(member: Member) -> bytes:
    try:
        return member.head()
    except MemberDamaged:
        return b""


def _by_content(heads: list[bytes]) -> ExportNotRecognized:
    if any(head.startswith(_WIDE) for head in heads):
        return ExportNotRecognized(
            "It is written in UTF-16.", "Save it as UTF-8 (or CSV UTF-8), and import that."
        )
    if len(heads) > 1 and any(map(looks_like_table, heads)):
        return ExportNotRecognized(
            "It holds several tables.", "Unpack it if it is a zip, and import each file by itself."
        )
    return ExportNotRecognized("No source knows this content.", SEE_SOURCES)
