"""The evidence of a search hit, from whichever member a server put it in.

Source: MCP adapter contract 10.4, 8.3.
"""

from dataclasses import dataclass

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.evidence.binary import is_encoded_passage
from personal_server.mcp_adapter.evidence.cutting import Cut
from personal_server.mcp_adapter.evidence.highlights import mark_ranges, tag, unescaped
from personal_server.rs_client.json_values import (
    Json,
    as_count,
    as_object,
    as_text,
    first_text,
    objects_in,
)

evidence_members = ("evidence_excerpts", "match_windows", "field_windows", "matches")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One passage that matched; marked holds balanced tags or none.

    Units: start_chars and total_chars are offsets in the whole value; shown_chars of the passage.
    """

    field_path: str | None
    marked: str
    shown_chars: int
    start_chars: int
    total_chars: int | None
    complete: bool

    def as_cut(self) -> Cut | None:
        """The note of an excerpt that is not known to be complete."""
        if self.complete or not self.field_path:
            return None
        return Cut(self.field_path, "text", "truncated", self.shown_chars, self.total_chars)


def excerpts_of(hit: Json) -> list[Excerpt]:
    """At most two passages of a hit; none when the server sent none."""
    for name in evidence_members:
        found = [excerpt for item in objects_in(hit.get(name)) if (excerpt := _excerpt(item))]
        if found:
            return found[: budgets.evidence_per_hit]
    return _snippet(hit)


def _excerpt(item: Json) -> Excerpt | None:
    text = first_text(item.get("preview_text"), item.get("text"), item.get("snippet"))
    if text is None:
        return None
    start = as_count(item.get("start_chars")) or 0
    complete = item.get("truncated") is False or item.get("complete") is True
    return Excerpt(
        field_path=first_text(item.get("field_path"), item.get("field")),
        marked=_readable(mark_ranges(text, start, item.get("match_ranges")), text),
        shown_chars=len(text),
        start_chars=start,
        total_chars=as_count(item.get("total_chars")),
        complete=complete,
    )


def _readable(marked: str, text: str) -> str:
    return "[binary]" if is_encoded_passage(text) else marked


def _snippet(hit: Json) -> list[Excerpt]:
    snippet = hit.get("snippet")
    text = as_text(snippet) or as_text(as_object(snippet).get("text"))
    if text is None:
        return []
    plain = unescaped(text)
    field = first_text(as_object(snippet).get("field"), as_object(snippet).get("field_path"))
    bare = tag.sub("", plain).strip("…")
    return [Excerpt(field, _readable(plain, bare), len(bare), 0, None, complete=False)]
