"""One search hit in both faces: its id first, one bounded excerpt, the way to the whole field.

Source: docs/contract/mcp-adapter.md 10.4, 8.3, 8.4, 8.5; docs/decisions.md C8, C19. No markup but
`<mark>` is produced or interpreted, and its tags stay balanced, whatever a server sent and
wherever a cut falls.
"""

import html
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import without
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.faces.content_ladder import ladder_entry, ladder_line, without_twin
from pdpp_mcp_server.faces.page_layout import Block
from pdpp_mcp_server.faces.page_table import SHARED_MEMBERS, PageTable, alike
from pdpp_mcp_server.faces.record_identity import (
    IDENTITY_MEMBERS,
    Holder,
    RecordPlace,
    happened_at,
    holder_of,
    record_address,
    record_title,
)
from pdpp_mcp_server.faces.relaxed_words import held_line
from pdpp_mcp_server.faces.text import fact
from pdpp_mcp_server.faces.truncation import (
    BASE64_TEXT,
    LEAST_DISTINCT,
    Measure,
    PayloadMember,
    Truncation,
    cut_members,
    cut_position,
    members_of,
    reach_of,
)
from pdpp_mcp_server.handles import spells_connection
from pdpp_mcp_server.kept_values import kept_property
from pdpp_mcp_server.rs_client.answers import connection_of, connector_key_of
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_count,
    as_list,
    as_object,
    as_text,
    first_text,
    is_list,
    is_object,
    objects_in,
)
from pdpp_mcp_server.safe_text import label, one_line, unlinked

RESULT_MEMBERS = frozenset({"id", "title", "url", "connection_id", "parent"})
"""What a result says; everything else about the hit stands in `data`, at the same place."""
HIT_MEMBERS = (SHARED_MEMBERS - {"connection_id"}) | {"retrieval_mode", "matched_fields"}
"""What many hits may say once, above them."""
LITERAL_HITS = contract.REFIT_ROWS
"""So few hits stand in `data` as the server sent them, each with the way on from its excerpt."""
READ_ON = (
    'use: read_record_field {"id":"<id as shown>","field_path":"<field>","offset_chars":<from>}'
    " where an excerpt is cut"
)
opening, closing = "<mark>", "</mark>"
LISTED_SOURCES = 8
LEAST_PASSAGE_CHARS = 64
TAG = re.compile(r"</?mark>")
EXCERPTS = "evidence_excerpts"
EXCERPT_MEMBERS = (EXCERPTS, "match_windows", "field_windows", "matches")
"""Where servers put the passages that matched, ours first."""
PASSAGE_TEXTS = ("preview_text", "text", "snippet")
"""Where a passage has its text."""
IN_PART: Json = {"truncated": True, "complete": False}
"""What a passage says of itself that is not shown whole."""
SHARE_BEFORE = 4
"""Of a passage that is cut, one part of so many stands before its match."""
BLANK = re.compile(r"\s+")
TEXT_MEMBERS = ("title", "author", "conversation", "snippet", "context", *EXCERPT_MEMBERS)
BESIDE = ("before", "after")
"""Which neighbours of a hit its context tells of."""
NAMED_MEMBERS = (IDENTITY_MEMBERS - {"expanded"}) | {
    *TEXT_MEMBERS,
    "data",
    "parent",
    "matched_fields",
    "duplicates",
    "matched_words",
    "when",
    "amount",
    "score",
    "scores",
    "retrieval_sources",
    "retrieval_mode",
}


class RenderedExcerpt(msgspec.Struct, frozen=True):
    """One passage that matched; marked holds balanced tags or none.

    Units: start_chars and total_chars are offsets in the whole value; shown_chars of the passage.
    """

    field_path: str | None
    marked: str
    shown_chars: int
    start_chars: int
    total_chars: int | None
    complete: bool

    def within(self, limit_chars: int) -> "RenderedExcerpt":
        """The passage from where its first match is seen in so many characters."""
        before, *rest = TAG.split(self.marked, maxsplit=2)
        skipped = skipped_chars(before, *map(len, rest), limit_chars=limit_chars) if rest else 0
        if not skipped:
            return self
        return replace(
            self,
            marked=self.marked[skipped:],
            shown_chars=self.shown_chars - skipped,
            start_chars=self.start_chars + skipped,
            complete=False,
        )

    def as_cut(self, limit_chars: int) -> Truncation | None:
        """The note of one that is not known to be shown whole; it is read on from its start."""
        is_whole = self.complete and self.shown_chars <= limit_chars
        if is_whole or not self.field_path:
            return None
        return Truncation(
            self.field_path,
            "text",
            "truncated",
            min(self.shown_chars, limit_chars),
            self.total_chars,
            next_chars=self.start_chars,
        )


class HitTable(PageTable, frozen=True, dict=True):
    """What the hits of a page have alike, if they are many, and which shows how an excerpt goes on.

    Shapes: excerpts are theirs, in their order; field_path is the field of most of these, where
            each has one.
    """

    excerpts: tuple[RenderedExcerpt | None, ...] = ()
    is_lean: bool = False
    field_path: str | None = None

    @classmethod
    def of_hits(cls, hits: Sequence[Json]) -> "HitTable":
        """The table of these hits; a few stay as they were sent."""
        shown = tuple(map(excerpt_of, hits))
        if len(hits) <= LITERAL_HITS:
            return cls(excerpts=shown)
        excerpts = [objects_in(hit.get(EXCERPTS)) for hit in hits]
        fields = Counter(as_text(each.get("field_path")) for found in excerpts for each in found)
        members = alike(hits, HIT_MEMBERS.__contains__)
        if all(excerpts):
            members.pop("matched_fields", None)
        field_path = max(fields, key=lambda name: fields[name]) if all(fields) and fields else None
        return cls(members, excerpts=shown, is_lean=True, field_path=field_path)

    def example(self, limit_chars: int) -> int:
        """The number of the first hit whose excerpt is cut, 0 where none is."""
        if limit_chars not in self._examples:  # each hit asks, at each measure
            cuts = (each and each.as_cut(limit_chars) for each in self.excerpts)
            self._examples[limit_chars] = next((n for n, cut in enumerate(cuts, 1) if cut), 0)
        return self._examples[limit_chars]

    @kept_property
    def _examples(self) -> dict[int, int]:
        return {}

    @kept_property
    def page(self) -> Json:
        """What stands once in the structured face."""
        alone = {"field_path": self.field_path} if self.field_path else {}
        return {**self.members, **alone}

    def own_members(self, hit: Json, result: Json) -> Json:
        """A hit without what stands above all of them, in its result, its id or its excerpt.

        Where marks begin and end is for programs; the text shows them.
        """
        if not self.is_lean:
            return hit
        excerpts = [self._own_excerpt(each, result) for each in objects_in(hit.get(EXCERPTS))]
        is_spelled = result["id"].endswith(f"{result['stream']}:{result['record_id']}")
        members = ("connection_id", "title", *(("stream", "record_id") if is_spelled else ()))
        twins = [name for name in members if hit.get(name) == result[name]]
        own = without(hit, *self.members, *twins, *(("matched_fields",) if excerpts else ()))
        return {**own, EXCERPTS: excerpts} if excerpts else own

    def _own_excerpt(self, excerpt: Json, result: Json) -> Json:
        text = excerpt.get("preview_text")
        is_title = text == result["title"] and excerpt.get("total_chars") == len(result["title"])
        twins = {"match_ranges", *(("preview_text",) if is_title else ())}
        if excerpt.get("field_path") == self.field_path:
            twins.add("field_path")
        return without(excerpt, *twins)


class HitItem(msgspec.Struct, frozen=True, dict=True):
    """One hit of a page; what does not depend on a measure is worked out once."""

    call: ToolCall
    hit: Json
    scope: RecordPlace
    number: int
    table: HitTable = HitTable()

    @kept_property
    def holder(self) -> Holder:
        """The record, and its id as shown."""
        return holder_of(self.call, self.hit, self.scope)

    @kept_property
    def excerpt(self) -> RenderedExcerpt | None:
        """The passage that matched."""
        known = self.table.excerpts
        return known[self.number - 1] if known else excerpt_of(self.hit)

    @kept_property
    def payload(self) -> list[PayloadMember]:
        """The members of the record, when a server sends them with its hits."""
        return members_of(as_object(self.hit.get("data")))

    @property
    def members(self) -> int:
        """How many members may be left out, counted on the longer side."""
        return max(len(self.payload), len(self.further))

    @kept_property
    def further(self) -> list[PayloadMember]:
        """Members that no rule names, as another server may send them; a lean hit has none."""
        return members_of({name: v for name, v in self.hit.items() if name not in NAMED_MEMBERS})

    def reach(self) -> int:
        """The preview length from which on nothing of it is cut."""
        texts = (_longest(value) for name, value in self.hit.items() if name in TEXT_MEMBERS)
        return max(contract.EXCERPT, reach_of(self.payload), reach_of(self.further), *texts)

    @property
    def texts(self) -> list[str]:
        """A hit is short at every measure."""
        return []

    def at(self, measure: Measure) -> Block:
        """The hit; its excerpt is as long as the measure allows, in both faces."""
        shown, cuts = cut_members(self.payload, measure)
        further, more_cuts = cut_members(self.further, measure)
        cuts += more_cuts
        limit = min(contract.EXCERPT, measure.preview)
        is_example = self.number == self.table.example(limit)
        excerpt = self.excerpt.within(limit) if self.excerpt else None
        cut = excerpt.as_cut(limit) if excerpt else None
        is_said_here = is_example or not self.table.is_lean
        cuts = [*([cut] if cut and is_said_here else ()), *cuts]
        ladder = [ladder_entry(self.call, self.holder, cut) for cut in cuts]
        ladder = ladder[: contract.LADDER_PER_HIT]
        matches = [_match_line(excerpt, limit)] if excerpt else []
        matches_on = [_cut_line(cut)] if cut and not is_said_here else []
        lines = (*self._head, *matches, *self._context, *matches_on, *map(ladder_line, ladder))
        result = {name: v for name, v in self._result.items() if name in RESULT_MEMBERS}
        if ladder:
            result["content_ladder"] = [_in_result(entry, is_example) for entry in ladder]
        edited = self.table.own_members(_shown(self.hit, further, measure), self._result)
        if is_object(self.hit.get("data")):
            edited["data"] = shown
        return Block(self.holder.id, edited, lines, tuple(ladder), result)

    @kept_property
    def _context(self) -> tuple[str, ...]:
        """How the messages before and after a hit in its conversation begin."""
        context = as_object(self.hit.get("context"))
        near = ((name, as_text(as_object(context.get(name)).get("text"))) for name in BESIDE)
        return tuple(f"{name}: {unlinked(one_line(repaired(text)))}" for name, text in near if text)

    @kept_property
    def _result(self) -> Json:
        hit, payload, record = self.hit, as_object(self.hit.get("data")), self.holder.record
        url = record_address(self.call.provider_url, hit, payload, record)
        result: Json = {
            "id": self.holder.id,
            "title": record_title(hit, payload, record, self.holder.id),
            "url": url or self.holder.id,
            "stream": record.stream if record else as_text(hit.get("stream")) or "",
            "record_id": record.record_id if record else "",
            "connection_id": record.connection_id if record else None,
            "connector_key": connector_key_of(hit),
        }
        name, moment = as_text(hit.get("display_name")), happened_at(hit, payload)
        if name:
            result["display_name"] = name
        if moment:
            result["timestamp"] = moment
        parent = self.hit.get("parent")
        if record and is_object(parent):
            holder = holder_of(self.call, parent, RecordPlace("", record.connection_id))
            result |= {"parent": holder.id} if holder.record else {}
        return result

    @kept_property
    def _head(self) -> tuple[str, ...]:
        shown, record = self.holder.id, self.holder.record
        lines = [f"[{self.number}] {shown}", f"title: {unlinked(self._result['title'])}"]
        lines.append(_source_line(self.hit, self._result))
        if record is not None and record.connection_id and not spells_connection(shown):
            lines.append(f"connection_id: {one_line(record.connection_id)}")
        if "parent" in self._result:
            lines.append(f"parent: {self._result['parent']}")
        return (*lines, *held_line(self.hit))


def _cut_line(cut: Truncation) -> str:
    """Where an excerpt goes on, by the call that another hit shows."""
    return f"cut: {label(cut.field_path)} {cut.shown}/{cut.total} from {cut.next_chars}"


def _in_result(entry: Json, is_example: bool) -> Json:
    """An entry without the id of its result, and the URI of one that a call reads as well."""
    return without(entry if is_example else without_twin(entry), "id")


def _longest(value: Any) -> int:
    """The characters of the longest text at any depth."""
    if isinstance(value, str):
        return len(value)
    if is_object(value):
        return max(map(_longest, value.values()), default=0)
    return max(map(_longest, value), default=0) if is_list(value) else 0


def _source_line(hit: Json, result: Json) -> str:
    same = as_count(hit.get("duplicates"))
    stated = (
        ("connector_key", result["connector_key"]),
        ("stream", result["stream"] if result["record_id"] else None),
        ("label", as_text(hit.get("display_name"))),
        ("at", result.get("timestamp")),
        ("collected", None if "timestamp" in result else as_text(hit.get("emitted_at"))),
        ("when", as_text(hit.get("when"))),
        ("amount", as_text(hit.get("amount"))),
        ("by", as_text(hit.get("author"))),
        ("in", as_text(hit.get("conversation"))),
        ("same_text", f"{same} more" if same else None),
    )
    return f"source: {'; '.join(fact(name, label(value)) for name, value in stated if value)}"


def _match_line(excerpt: RenderedExcerpt, limit_chars: int) -> str:
    shown = unlinked(one_line(cut_marked(excerpt.marked, limit_chars)))
    name = label(excerpt.field_path) if excerpt.field_path else "text"
    mark = "" if excerpt.complete else " (cut)"
    return f"match {name}{mark}: {shown}"


def _shown(hit: Json, further: Json, measure: Measure) -> Json:
    """The hit as sent, but for repaired tags and what had to be cut."""
    shown: Json = {}
    for name, value in hit.items():
        if name in TEXT_MEMBERS:
            shown[name] = _text_member(value, measure)
        elif name in NAMED_MEMBERS:
            shown[name] = value
        elif name in further:
            shown[name] = further[name]
    return shown


def _text_member(value: Any, measure: Measure) -> Any:
    if isinstance(value, str):
        value = repaired(value)
        return value if len(value) <= measure.preview else cut_marked(value, measure.preview)
    if is_object(value):
        seen = in_sight(value, measure.preview)
        return {name: _text_member(item, measure) for name, item in seen.items()}
    if is_list(value):
        return [_text_member(item, measure) for item in value]
    return value


def excerpt_of(hit: Json) -> RenderedExcerpt | None:
    """The first passage of a hit; none when the server sent none."""
    items = (item for name in EXCERPT_MEMBERS for item in objects_in(hit.get(name)))
    found = (excerpt for item in items if (excerpt := _excerpt(item)))
    return next(found, None) or _snippet(hit)


def skipped_chars(before: str, match_chars: int, after_chars: int = 0, *, limit_chars: int) -> int:
    """How much of what stands before a match is left out, so that a cut leaves it in sight."""
    begin = len(before)
    end = begin + match_chars
    if end <= limit_chars or not before:
        return 0
    lead = min(limit_chars // SHARE_BEFORE, max(limit_chars - match_chars, 0))
    skipped = min(begin - lead, end + after_chars - limit_chars)
    blank = None if before[skipped - 1].isspace() else BLANK.search(before, skipped)
    return blank.end() if blank else cut_position(before, skipped)


def in_sight(passage: Json, limit_chars: int) -> Json:
    """A passage from where its first match is seen in so many characters."""
    name = next((name for name in PASSAGE_TEXTS if as_text(passage.get(name))), None)
    if name is None or len(passage[name]) <= limit_chars:
        return passage
    text, start = passage[name], as_count(passage.get("start_chars")) or 0
    found = _inside(as_list(passage.get("match_ranges")), start, len(text))
    begin, end = found[0] if found and not TAG.search(text) else (0, 0)
    skipped = skipped_chars(text[:begin], end - begin, len(text) - end, limit_chars=limit_chars)
    if not skipped:
        return passage
    partly = {name: said for name, said in IN_PART.items() if name in passage}
    return {**passage, **partly, name: text[skipped:], "start_chars": start + skipped}


def _excerpt(item: Json) -> RenderedExcerpt | None:
    text = first_text(*map(item.get, PASSAGE_TEXTS))
    if text is None:
        return None
    start, total = as_count(item.get("start_chars")) or 0, as_count(item.get("total_chars"))
    complete = item.get("truncated") is False or item.get("complete") is True
    if "truncated" not in item and total is not None:
        complete = total == len(text)
    return RenderedExcerpt(
        field_path=first_text(item.get("field_path"), item.get("field")),
        marked=_readable(mark_ranges(text, start, item.get("match_ranges")), text),
        shown_chars=len(text),
        start_chars=start,
        total_chars=total,
        complete=complete,
    )


def is_encoded_passage(text: str) -> bool:
    """Whether a passage is a stretch of encoded bytes rather than words."""
    if len(text) < LEAST_PASSAGE_CHARS or not BASE64_TEXT.fullmatch(text):
        return False
    return len(set(text)) >= LEAST_DISTINCT


def _readable(marked: str, text: str) -> str:
    return "[binary]" if is_encoded_passage(text) else marked


def _snippet(hit: Json) -> RenderedExcerpt | None:
    snippet = hit.get("snippet")
    text = as_text(snippet) or as_text(as_object(snippet).get("text"))
    if text is None:
        return None
    plain = unescaped(text)
    field = first_text(as_object(snippet).get("field"), as_object(snippet).get("field_path"))
    bare = TAG.sub("", plain).strip("…")
    return RenderedExcerpt(field, _readable(plain, bare), len(bare), 0, None, complete=False)


def is_balanced(text: str) -> bool:
    """Whether tags alternate, opening first, none left open."""
    tags = TAG.findall(text)
    return tags == [opening, closing] * (len(tags) // 2)


def repaired(text: str) -> str:
    """The text itself when its tags are balanced, else without any."""
    return text if is_balanced(text) else TAG.sub("", text)


def cut_marked(text: str, limit_chars: int) -> str:
    """At most limit_chars of visible text; tags do not count, none is split, none stays open."""
    text = repaired(text)
    pieces = TAG.split(text)
    shown: list[str] = []
    left = limit_chars
    for position, piece in enumerate(pieces):
        kept = piece if len(piece) <= left else piece[: cut_position(piece, left)] if left else ""
        left -= len(kept)
        marked = position % 2 == 1
        shown.append(f"{opening}{kept}{closing}" if marked and kept else kept)
        if len(kept) < len(piece):
            return "".join(shown) + "…"
    return "".join(shown)


def mark_ranges(text: str, start_chars: int, ranges: object) -> str:
    """An excerpt with its matches tagged; one whose own text holds a tag is left plain."""
    if TAG.search(text):
        return TAG.sub("", text)
    shown: list[str] = []
    at = 0
    for begin, end in _inside(as_list(ranges), start_chars, len(text)):
        if begin >= at:
            shown += (text[at:begin], opening, text[begin:end], closing)
            at = end
    return "".join(shown) + text[at:]


def _inside(ranges: Sequence[object], start_chars: int, size: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for item in ranges:
        match item:
            case [int(begin), int(end)] if 0 <= begin - start_chars < end - start_chars <= size:
                found.append((begin - start_chars, end - start_chars))
            case _:
                continue
    return sorted(found)


def unescaped(snippet: str) -> str:
    """A snippet's text: entities resolved outside its own tags, which stay only when balanced."""
    if not is_balanced(snippet):
        return TAG.sub("", html.unescape(TAG.sub("", snippet)))
    parts = [html.unescape(part) for part in TAG.split(snippet)]
    if any(TAG.search(part) for part in parts):
        return TAG.sub("", "".join(parts))
    return "".join(
        f"{opening}{part}{closing}" if position % 2 else part for position, part in enumerate(parts)
    )


def source_mix_lines(rows: Sequence[Json]) -> list[str]:
    """From which sources the rows of a page come."""
    if not rows:
        return []
    shown = [_source(row) for row in rows[:LISTED_SOURCES]]
    more = len(rows) - LISTED_SOURCES
    return [f"source_mix: {' | '.join(shown)}" + (f" +{more} more" if more > 0 else "")]


def _source(row: Json) -> str:
    name = first_text(row.get("display_name"))
    parts = [connection_of(row), connector_key_of(row), f'"{label(name)}"' if name else None]
    return " ".join(label(part) for part in parts if part) + f" {row.get('count', 0)}"
