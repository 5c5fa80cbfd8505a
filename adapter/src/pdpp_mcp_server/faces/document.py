"""One record as a document: bounded text, what else it holds, and the way to what was cut.

Source: docs/contract/mcp-adapter.md 10.5, 8.4, 8.5. With `fields` nothing of an unrequested field
occurs anywhere; identity stays.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.errors import NextCall
from pdpp_mcp_server.faces import text
from pdpp_mcp_server.faces.content_ladder import ladder_entry, without_twin
from pdpp_mcp_server.faces.record_identity import (
    TITLE_NAMES,
    Holder,
    RecordPlace,
    author,
    event_time,
    holder_of,
    own_address,
    payload_of,
    record_address,
    record_title,
)
from pdpp_mcp_server.faces.truncation import (
    EVERYTHING,
    Measure,
    PayloadMember,
    Truncation,
    cut_members,
    cut_position,
    largest,
    members_of,
)
from pdpp_mcp_server.handles import RecordRef, is_part, record_uri
from pdpp_mcp_server.rs_client.answers import (
    connection_of,
    connector_key_of,
    meta_of,
    record_key_of,
)
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_count,
    as_text,
    compact,
    is_list,
    is_object,
    objects_in,
)
from pdpp_mcp_server.safe_text import escaped_json, one_line

TEXT_NAMES = ("text", "content", "body", "summary")
WRAPPER_NAMES = frozenset(
    {"display_name", "connector_key", "connector_id", "emitted_at", "record_url"}
)
# With what stands before it, within what a host shows that cuts the middle out.
LADDER_CHARS = 4_000


class Document(msgspec.Struct, frozen=True):
    """One record as it was read.

    Shapes: id and requested are those of the call; fields are the requested ones, none for all;
        relations are as the schema lists them, where one was read; image is what is said of
        an image that was asked for.
    """

    id: str
    requested: RecordRef
    body: Json
    fields: tuple[str, ...]
    binary_fields: frozenset[str] = frozenset()
    relations: Mapping[str, Json] = msgspec.field(default_factory=dict[str, Json])
    image: Json | None = None

    @property
    def payload(self) -> Json:
        """The record's own members, only the requested ones when some were requested."""
        payload = payload_of(self.body)
        if not self.fields:
            return payload
        return {name: value for name, value in payload.items() if name in self.fields}

    @property
    def wrapper(self) -> Json:
        """Members beside the payload that say where it comes from.

        Title and time are those of the payload. A server that was asked for a zone says both of
        the record, too: its title is taken where no field is called one.
        """
        names = WRAPPER_NAMES
        if self.zone and not self.fields:
            is_titled = any(as_text(self.payload.get(name)) for name in TITLE_NAMES)
            names |= {"at", "when"} if is_titled else {"at", "when", "title"}
        return {name: value for name, value in self.body.items() if name in names}

    @property
    def zone(self) -> str | None:
        """In whose zone the server says when the record was."""
        return as_text(meta_of(self.body).get("time_zone"))

    @property
    def record(self) -> RecordRef:
        """Where the record is, as answered."""
        stream = as_text(self.body.get("stream")) or ""
        return RecordRef(
            connection_of(self.body) or self.requested.connection_id,
            stream if is_part(stream) else self.requested.stream,
            record_key_of(self.body) or self.requested.record_id,
        )


def without_twins(structured: Json) -> Json:
    """A document as it is shown: no URI in its ladder beside a call that reads the same."""
    metadata = structured["metadata"]
    ladder = [without_twin(entry) for entry in metadata["content_ladder"]]
    return {**structured, "metadata": {**metadata, "content_ladder": ladder}}


def render_document(call: ToolCall, document: Document) -> Json:
    """The document, before `without_twins`, with as much text as both faces hold after it."""

    def fits(structured: Json) -> bool:
        return len(escaped_json(without_twins(structured))) <= call.budget.structured_aim

    whole = _Parts.of(call, document, contract.CHILD_LINE)
    if not fits(whole.at(0)):
        whole = _Parts.of(call, document, 0)
    most = call.budget.scaled(contract.DOCUMENT_TEXT)
    full = whole.at(most)
    if fits(full):
        return full
    return whole.at(largest(most, lambda chars: fits(whole.at(chars))))


class _Parts(msgspec.Struct, frozen=True):
    """Everything but the text, made once; the text is cut to measure."""

    call: ToolCall
    document: Document
    holder: Holder
    members: list[PayloadMember]
    text_field: str | None
    fields: Json
    cuts: tuple[Truncation, ...]
    expanded: Json

    @classmethod
    def of(cls, call: ToolCall, document: Document, line_chars: int) -> "_Parts":
        members = members_of(document.payload, document.binary_fields)
        field = _text_field(members)
        fields, cuts = _fields([m for m in members if m.name != field] if field else [])
        holder = Holder(document.id, document.record)
        expanded = _expanded(call, document, line_chars)
        return cls(call, document, holder, members, field, fields, tuple(cuts), expanded)

    def at(self, limit_chars: int) -> Json:
        """The document with at most limit_chars of text."""
        document, wrapper, payload = self.document, self.document.wrapper, self.document.payload
        shown, cuts, total = self._text(limit_chars)
        record = document.record
        address = record_address(self.call.provider_url, wrapper, payload, record)
        metadata: Json = self._identity(record, wrapper)
        # what a host that cuts the rest of a result has to show stands first
        warnings = text.server_warnings(document.body)
        if warnings:
            metadata["warnings"] = warnings
        metadata["notice"] = text.NOTICE
        metadata["truncated"] = any(map(_is_missing, cuts))
        metadata["total_chars"] = total
        metadata["content_ladder"] = self._ladder([*cuts, *self.cuts])
        if self.text_field:
            metadata["text_field"] = self.text_field
        if self.fields:
            metadata["fields"] = self.fields
        if self.expanded:
            metadata["expanded"] = self.expanded
        if document.image is not None:
            metadata["image"] = document.image
        title = record_title(wrapper, payload, record, document.id)
        return {
            "id": document.id,
            "title": title,
            "url": address or record_uri(record),
            "metadata": metadata,
            "text": shown,
        }

    def _identity(self, record: RecordRef, wrapper: Json) -> Json:
        found: Json = {
            "stream": record.stream,
            "record_id": record.record_id,
            "connection_id": record.connection_id,
            "connector_key": connector_key_of(wrapper),
        }
        for name in ("display_name", "emitted_at"):
            if as_text(self.document.body.get(name)):
                found[name] = self.document.body[name]
        when = as_text(wrapper.get("when"))
        if when and self.document.zone:
            found |= {"when": when, "time_zone": self.document.zone}
        return found

    def _text(self, limit_chars: int) -> tuple[str, list[Truncation], int]:
        if self.text_field is None:
            total = len(compact(self.document.payload))
            return *_json_text(self.members, limit_chars), total
        value: str = self.document.payload[self.text_field]
        if len(value) <= limit_chars:
            return value, [], len(value)
        shown = value[: cut_position(value, limit_chars)] if limit_chars else ""
        cut = Truncation(self.text_field, "text", "truncated", len(shown), len(value))
        return shown, [cut], len(value)

    def _ladder(self, cuts: list[Truncation]) -> list[Json]:
        entries = [ladder_entry(self.call, self.holder, cut) for cut in cuts]
        if len(compact([without_twin(entry) for entry in entries])) <= LADDER_CHARS:
            return entries
        total = len(self.document.payload)
        rest = Truncation(EVERYTHING, "json", "omitted", max(total - len(cuts), 0), total, 1 << 30)
        return [*entries[:1], ladder_entry(self.call, self.holder, rest)]


def _text_field(members: list[PayloadMember]) -> str | None:
    texts = {m.name for m in members if isinstance(m.value, str) and not m.note and m.value.strip()}
    return next((name for name in TEXT_NAMES if name in texts), None)


def _is_missing(cut: Truncation) -> bool:
    """Whether a cut left something out; a reference to bytes is whole."""
    return cut.facts is None or cut.facts.blob_id is None


def _json_text(members: list[PayloadMember], limit_chars: int) -> tuple[str, list[Truncation]]:
    """The payload as JSON, values cut until it fits; it stays valid JSON."""
    for preview in (contract.DOCUMENT_TEXT, *contract.PREVIEWS, contract.SHORTEST_PREVIEW):
        shown, cuts = cut_members(members, Measure.of(preview))
        if len(compact(shown)) <= limit_chars:
            return compact(shown), cuts

    def first(kept: int) -> tuple[str, list[Truncation]]:
        shown, cuts = cut_members(members, Measure(contract.SHORTEST_PREVIEW, 0, kept))
        return compact(shown), cuts

    return first(largest(len(members), lambda kept: len(first(kept)[0]) <= limit_chars))


def _fields(members: list[PayloadMember]) -> tuple[Json, list[Truncation]]:
    """The other members, short, as many as fit."""
    measure = Measure(contract.DOCUMENT_FIELD, contract.DOCUMENT_FIELD)
    shown: Json = {}
    cuts: list[Truncation] = []
    left = contract.DOCUMENT_FIELDS
    for member in members:
        short, notes = member.at(measure)
        size = len(compact(short)) + len(compact(member.name)) + 2
        if size <= left:
            shown[member.name] = short
            cuts += notes
            left -= size
        else:
            cuts.append(member.left_out())
    return shown, cuts


def _expanded(call: ToolCall, document: Document, line_chars: int) -> Json:
    expanded = document.body.get("expanded")
    if not is_object(expanded):
        return {}
    children = _Children(call, document, line_chars)
    return {name: children.of(name, value) for name, value in expanded.items()}


class _Children(msgspec.Struct, frozen=True):
    """Related records as lines of a list: who, when, and how each begins."""

    call: ToolCall
    document: Document
    line_chars: int

    def of(self, relation: str, value: Any) -> Any:
        """One relation as it is shown: a list, one record, or null."""
        if not is_object(value):
            return value
        if not is_list(value.get("data")):
            return self._child(relation, value)
        rows = objects_in(value["data"])
        shown = [self._child(relation, row) for row in rows[: contract.DOCUMENT_CHILDREN]]
        more = value.get("has_more") is True or len(rows) > len(shown)
        found: Json = {"has_more": more}
        total = as_count(value.get("total"))
        if total is not None:
            found["total"] = total
        listing = self._listing(relation) if more else None
        if listing:
            found["next"] = listing.as_json()
        return {**found, "data": shown}

    def _child(self, relation: str, row: Json) -> Json:
        scope = RecordPlace(as_text(row.get("stream")) or relation, self._connection)
        holder = holder_of(self.call, row, scope)
        payload = payload_of(row)
        title = record_title(row, payload, holder.record, holder.id)
        found: Json = {"id": holder.id, "title": title}
        line = self._line(payload)
        declared = {
            "url": own_address(payload),
            "by": author(payload),
            "at": event_time({}, payload),
            "line": line if line != title else None,
        }
        return {**found, **{name: value for name, value in declared.items() if value}}

    def _line(self, payload: Json) -> str | None:
        field = _text_field(members_of(payload, frozenset()))
        if field is None or not self.line_chars:
            return None
        return one_line(payload[field], self.line_chars)

    def _listing(self, relation: str) -> NextCall | None:
        """The call that lists all of them, where the relation's key and its value are known."""
        declared = self.document.relations.get(relation, {})
        name = as_text(declared.get("foreign_key"))
        stream = as_text(declared.get("target_stream")) or as_text(declared.get("stream"))
        if not name or not stream:
            return None
        on_both = declared.get("foreign_key_on") == "both"
        value = self.document.payload.get(name) if on_both else self.document.record.record_id
        if not isinstance(value, str | int) or not 0 < len(str(value)) <= contract.STRING_ARGUMENT:
            return None
        connection = {"connection_id": self._connection} if self._connection else {}
        asked = {"stream": stream, **connection, "filter": {name: value}, "order": "asc"}
        return NextCall("query_records", asked)

    @property
    def _connection(self) -> str | None:
        return self.document.record.connection_id
