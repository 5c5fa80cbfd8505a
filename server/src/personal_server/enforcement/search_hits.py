"""Search hits: what is shown of a matching record.

Rule: like `disclose`, everything is computed from granted fields of the record's own source; but
for title, snippet and excerpts a hit holds no text of the record.
Source: docs/contract/resource-server.md 11.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.declared_units import CURRENCY, DeclaredUnit
from pdpp_kernel.record import StoredRecord, key_segment
from pdpp_kernel.values import render_instant
from pdpp_kernel.wire_objects import ConnectionId, Count, Instant, RoutePath, WireObject, Word
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.disclose import granted_emitted_at_ns, granted_value, identity
from personal_server.enforcement.excerpts import (
    Excerpt,
    FieldMatches,
    Snippet,
    find_matches,
    passage_excerpt,
    passage_snippet,
    render_excerpt,
    render_snippet,
    strongest_first,
)
from personal_server.enforcement.named_fields import words_in
from personal_server.enforcement.rows import Neighbours
from personal_server.enforcement.search import searchable_fields
from personal_server.enforcement.semantic_queries import meaning_fields

TITLE_CHARS = 200
NEIGHBOUR_CHARS = 80

RetrievalMode = Literal["lexical", "semantic", "hybrid"]


class ParentRecord(WireObject):
    """The record that a file came with."""

    stream: Word
    record_id: Word


class NeighbourRecord(WireObject):
    """A record beside a hit in its conversation, and how it begins."""

    record_id: Word
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=NEIGHBOUR_CHARS)] | None = None


class ConversationContext(WireObject):
    """What stands right before and right after a hit in its conversation."""

    before: NeighbourRecord | None = None
    after: NeighbourRecord | None = None


class SearchResult(WireObject, kw_only=True, tag_field="object", tag="search_result"):
    """A matching record, and where it matches.

    Shapes: a lean one leaves out what its other members say: the key in other words, the address
            that they make, and the passage once more, marked.
    """

    stream: Word
    id: Word | None = None
    record_id: Word
    record_key: Word | None = None
    connection_id: ConnectionId
    connector_key: Word
    display_name: str | None = None
    grant_id: str | None = None
    connector_id: Word | None = None
    emitted_at: Instant
    matched_fields: Annotated[Sequence[Word], msgspec.Meta(min_length=1)]
    record_url: RoutePath | None = None
    retrieval_mode: RetrievalMode
    snippet: Snippet | None = None
    evidence_excerpts: Annotated[Sequence[Excerpt], msgspec.Meta(min_length=1, max_length=1)]
    title: Annotated[str, msgspec.Meta(max_length=TITLE_CHARS)] | None = None
    author: Annotated[str, msgspec.Meta(max_length=TITLE_CHARS)] | None = None
    conversation: Annotated[str, msgspec.Meta(max_length=TITLE_CHARS)] | None = None
    amount: str | None = None
    authored_at: str | None = None
    when: str | None = None
    parent: ParentRecord | None = None
    context: ConversationContext | None = None
    matched_words: Annotated[Sequence[Word], msgspec.Meta(min_length=1)] | None = None
    duplicates: Count | None = None
    retrieval_sources: Sequence[str] | None = None


class FoundPassage(NamedTuple):
    """A passage that was found by meaning: [start, end) of a field."""

    field: str
    start_chars: int
    end_chars: int


class SoughtHit(msgspec.Struct, frozen=True):
    """By what a hit was found; `written`: how the caller wrote the words, where it says which;
    `duplicates`: how many others have the same text; `weight`: as in `matches_in`.
    """

    words: WordQuery
    passage: FoundPassage | None = None
    mode: RetrievalMode = "lexical"
    written: Sequence[str] | None = None
    duplicates: int = 0
    weight: int = 0


def disclose_hit(
    authority: ReadAuthority,
    source: ReadableSource,
    row: StoredRecord,
    sought: SoughtHit,
    *,
    is_lean: bool = False,
) -> SearchResult | None:
    """The hit of a row, or `None` if its granted fields hold neither the words nor the passage.

    `is_lean`: for a caller that counts characters.
    """
    words, passage, mode, written = sought.words, sought.passage, sought.mode, sought.written
    found = None if mode == "semantic" else matches_in(source, row, words, sought.weight)
    meant = None if passage is None else _excerpt(source, row, passage)
    if found is None and meant is None:
        return None
    quoted, excerpt = _quoted(source, found or (), meant)
    named = dict.fromkeys([each.field for each in found or ()])
    if meant is not None:
        named[meant.field_path] = None
    granted = frozenset(source.fields)
    title = granted_value(row, source, source.declared.title_field)
    authored = granted_value(row, source, source.declared.event_time_field)
    hit = SearchResult(
        stream=row.stream,
        record_id=row.key,
        **identity(authority, source),
        emitted_at=render_instant(granted_emitted_at_ns(row, granted)),
        matched_fields=list(named),
        retrieval_mode=mode,
        evidence_excerpts=[excerpt.lean() if is_lean else excerpt],
        retrieval_sources=_rankings(found, meant) if mode == "hybrid" else None,
        title=title[:TITLE_CHARS] if isinstance(title, str) else None,
        author=author_of(source, row),
        conversation=conversation_name(source, row),
        amount=amount_of(source, row),
        authored_at=authored if isinstance(authored, str) else None,
        parent=_parent(authority, source, row) if source.declared.blob_fields else None,
        matched_words=None if written is None else _held(source, found or (), words, written),
    )
    if is_lean:
        return hit
    path = f"/v1/streams/{quote(row.stream, safe='')}/records/{key_segment(row.key)}"
    hit.record_url = f"{path}?connection_id={quote(row.connection_id, safe='')}"
    hit.id, hit.record_key, hit.connector_id = row.key, row.key, source.connector_key
    hit.snippet = passage_snippet(excerpt) if quoted is None else render_snippet(quoted, excerpt)
    return hit


def _quoted(
    source: ReadableSource, found: Sequence[FieldMatches], meant: Excerpt | None
) -> tuple[FieldMatches | None, Excerpt]:
    """What is quoted: where words match, in a field that `title` does not say whole; else what was
    found by meaning.
    """
    title_field = source.declared.title_field
    telling = (each for each in found if each.field != title_field or len(each.text) > TITLE_CHARS)
    quoted = next(telling, found[0] if found else None)
    if quoted is not None:
        return quoted, render_excerpt(quoted)
    assert meant is not None  # noqa: S101  # one of the two found it
    return None, meant


def _rankings(found: Sequence[FieldMatches] | None, meant: Excerpt | None) -> list[str]:
    used = {"lexical": found is not None, "semantic": meant is not None}
    return [name for name, is_held in used.items() if is_held]


def _excerpt(source: ReadableSource, row: StoredRecord, found: FoundPassage) -> Excerpt | None:
    text = row.data.get(found.field)
    if not isinstance(text, str) or found.field not in meaning_fields(source):
        return None
    return passage_excerpt(*found[:1], text, *found[1:])


def author_of(source: ReadableSource, row: StoredRecord) -> str | None:
    """What the first granted field says that names who wrote it."""
    return _first_text(source, row, source.declared.fields_with_role("author"))


def conversation_name(source: ReadableSource, row: StoredRecord) -> str | None:
    """What people call the conversation that it is in; of mails the title says that."""
    return _first_text(source, row, naming_conversations(source))


def naming_conversations(source: ReadableSource) -> tuple[str, ...]:
    """The field that says how people call a conversation, if there is one beside the title."""
    declared = source.declared
    field = declared.properties.get(declared.conversation_field or "")
    named = None if field is None else field.label_field
    return () if named in (None, declared.title_field) else (named,)


def amount_of(source: ReadableSource, row: StoredRecord) -> str | None:
    """What a payment comes to, and its currency."""
    for name, unit in paid_in(source):
        value = granted_value(row, source, name)
        currency = unit.named(granted_value(row, source, unit.field))
        if isinstance(value, int | float) and currency is not None:
            return f"{value} {currency}"
    return None


def paid_in(source: ReadableSource) -> Iterator[tuple[str, DeclaredUnit]]:
    """The granted fields of amounts whose currency is granted, and what says which it is."""
    properties = source.declared.properties
    for name in source.declared.measured:
        unit = DeclaredUnit.of(properties[name])
        if unit is None or unit.field is None or not {name, unit.field} <= {*source.fields}:
            continue
        if properties[unit.field].type == CURRENCY:
            yield name, unit


def _first_text(source: ReadableSource, row: StoredRecord, names: Iterable[str]) -> str | None:
    for name in names:
        value = granted_value(row, source, name)
        if isinstance(value, str) and value.strip():
            return value[:TITLE_CHARS]
    return None


def _held(
    source: ReadableSource, found: Iterable[FieldMatches], words: WordQuery, written: Sequence[str]
) -> list[str]:
    """The words that stand in some field; what names the value of one is met anyway."""
    matched = frozenset[int]().union(*(each.terms for each in found))
    terms = words_in(words, source.declared, source.fields).terms
    asked = enumerate(zip(terms, written, strict=True))
    return [word for index, (term, word) in asked if index in matched or not term.tokens]


def _parent(
    authority: ReadAuthority, source: ReadableSource, row: StoredRecord
) -> ParentRecord | None:
    """The record that the row's own key field names, where its stream can be read too."""
    readable = {e.stream for e in authority.sources if e.connection_id == source.connection_id}
    for relation in source.declared.relationships:
        if relation.foreign_key_on == "self" and relation.stream in readable:
            key = granted_value(row, source, relation.foreign_key)
            if isinstance(key, str) and key:
                return ParentRecord(relation.stream, key)
    return None


def disclose_context(source: ReadableSource, neighbours: Neighbours) -> ConversationContext | None:
    """What a hit says of its neighbours, `None` without any."""
    if not neighbours.rows:
        return None
    before, after = (_neighbour(source, row) for row in (neighbours.before, neighbours.after))
    return ConversationContext(before=before, after=after)


def _neighbour(source: ReadableSource, row: StoredRecord | None) -> NeighbourRecord | None:
    if row is None:
        return None
    body = spoken_text(source, row)
    return NeighbourRecord(record_id=row.key, text=None if body is None else body[:NEIGHBOUR_CHARS])


def spoken_fields(source: ReadableSource) -> tuple[str, ...]:
    """The granted fields that hold what a record says, what reads best by meaning first."""
    declared = (*source.declared.semantic_fields, *source.declared.lexical_fields)
    return tuple(name for name in dict.fromkeys(declared) if name in source.fields)


def spoken_text(source: ReadableSource, row: StoredRecord) -> str | None:
    """What a record says: the first of these fields that is not blank."""
    texts = (row.data.get(name) for name in spoken_fields(source))
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def text_chars(source: ReadableSource, row: StoredRecord) -> int:
    """How much text a hit of that row is found in."""
    named = dict.fromkeys((*searchable_fields(source), *meaning_fields(source)))
    texts = (row.data.get(name) for name in named)
    return sum(len(text) for text in texts if isinstance(text, str))


def matches_in(
    source: ReadableSource, row: StoredRecord, words: WordQuery, weight: int = 0
) -> list[FieldMatches] | None:
    """The matches by field, strongest first, if enough terms match somewhere, none excluded.

    `weight`: what the words weigh in this row together, 0 where nobody knows.
    """
    words = words_in(words, source.declared, source.fields)
    wanted = frozenset(range(len(words.terms)))
    sought = (*words.terms, *words.excluded)
    texts = {
        name: text
        for name in searchable_fields(source)
        if isinstance(text := row.data.get(name), str)
    }
    found: list[FieldMatches] = []
    if weight and not words.excluded:
        # where what is spelled so is all that there is, nobody needs languages and stems
        found = _matches(texts, sought, is_spelled=True)
        weighty = source.declared.weighty_fields
        weight -= sum(each.occurrences * (2 if each.field in weighty else 1) for each in found)
    if weight or not found:
        found = _matches(texts, sought)
    matched = frozenset[int]().union(*(each.terms for each in found))
    if not matched <= wanted or not words.is_met(matched):
        return None
    return strongest_first(found, source.declared.title_field)


def _matches(
    texts: Mapping[str, str], sought: Sequence[Term], *, is_spelled: bool = False
) -> list[FieldMatches]:
    """The matches in each field that has any."""
    found = (find_matches(*each, sought, is_spelled=is_spelled) for each in texts.items())
    return [each for each in found if each is not None]
