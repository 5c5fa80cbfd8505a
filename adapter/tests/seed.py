"""The small world that the corpus is asked about: two mailboxes and a bank."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from adapter.tests.fake_rs import FakeRs, Source

Json = dict[str, Any]
long_body = "".join(f"Paragraph {n}: your flight to Lisbon, seat 12A 🛫 é. " for n in range(120))
photo = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
photo_text = b64encode(photo).decode()
binary_needle = photo_text[400:460]


def _can(*names: str, role: str | None = None, kind: str = "string") -> Json:
    def ability(name: str) -> Json:
        return {"declared": name in names, "usable": name in names}

    kinds = ("count_distinct", "group_by", "group_by_time", "max", "min", "sum")
    facts: Json = {
        "type": kind,
        "schema": {"type": kind},
        "granted": True,
        "exact_filter": ability("eq"),
        "range_filter": {**ability("r"), "operators": ["gte", "gt", "lte", "lt"]},
        "sort": ability("sort"),
        "lexical_search": ability("lex"),
        "semantic_search": ability("sem"),
        "aggregation": {name: ability(name) for name in kinds},
    }
    return {**facts, "role": role} if role else facts


def _declared(flags: dict[str, str], capabilities: Json, expand: list[Json]) -> Json:
    return {
        "flags": flags,
        "capabilities": capabilities,
        "properties": {name: {"type": "string"} for name in flags},
        "expand": expand,
    }


attachments_relation: Json = {
    "name": "attachments",
    "stream": "attachments",
    "target_stream": "attachments",
    "cardinality": "has_many",
    "granted": True,
    "usable": True,
    "foreign_key": "message_id",
    "child_parent_key_field": "message_id",
    "foreign_key_on": "target",
    "default_limit": 10,
    "max_limit": 50,
}

declarations: dict[str, Json] = {
    "messages": _declared(
        {
            "id": "t=string,eq",
            "subject": "t=text,role=primary-title,eq,lex,a=group_by",
            "body": "t=text,eq,lex",
            "sent_at": "t=timestamp,eq,r=gte|gt|lte|lt,a=group_by_time|max|min",
            "from": "t=string,eq,a=count_distinct|group_by",
            "photo": "t=blob",
        },
        {
            "id": _can("eq"),
            "subject": _can("eq", "lex", "group_by", role="primary-title", kind="text"),
            "body": _can("eq", "lex", kind="text"),
            "sent_at": _can("eq", "r", "group_by_time", "max", "min", kind="timestamp"),
            "from": _can("eq", "count_distinct", "group_by"),
            "photo": _can(kind="blob"),
        },
        [attachments_relation],
    ),
    "attachments": _declared(
        {"id": "t=string,eq", "message_id": "t=string,eq", "filename": "t=string,eq,lex"},
        {"id": _can("eq"), "message_id": _can("eq"), "filename": _can("eq", "lex")},
        [],
    ),
    "transactions": _declared(
        {
            "id": "t=string,eq",
            "amount": "t=number,eq,a=max|min|sum",
            "category": "t=string,eq,a=group_by",
            "sent_at": "t=timestamp,eq,r=gte|gt|lte|lt",
            "note": "t=string,eq,lex",
        },
        {
            "id": _can("eq"),
            "amount": _can("eq", "max", "min", "sum", kind="number"),
            "category": _can("eq", "group_by"),
            "sent_at": _can("eq", "r", kind="timestamp"),
            "note": _can("eq", "lex"),
        },
        [],
    ),
}


def message(number: int, label: str) -> Json:
    """One mail."""
    return {
        "id": f"m{number}",
        "subject": f"{label} invoice {number} for garden tools",
        "body": f"Dear reader, the total of the invoice is {number} euro.",
        "sent_at": f"2026-01-{number:02d}T10:00:00Z",
        "from": f"shop{number % 3}@example.org",
    }


def personal() -> Source:
    """The first mailbox."""
    messages = {f"m{n}": message(n, "Personal") for n in range(1, 13)}
    messages["m8"]["body"] = long_body
    messages["m9"]["photo"] = photo_text
    blob = {"blob_id": "blob_1", "mime_type": "image/png", "size_bytes": len(photo), "sha256": "ab"}
    messages["m10"]["blob_ref"] = {**blob, "fetch_url": "/v1/blobs/blob_1?connection_id=cin_a"}
    files = {
        "at1": {"id": "at1", "message_id": "m1", "filename": "one.pdf"},
        "at2": {"id": "at2", "message_id": "m1", "filename": "two.pdf"},
    }
    streams = {"messages": messages, "attachments": files}
    return Source("cin_a", "gmail", "grt_1", "Personal mail", streams)


def work() -> Source:
    """The second mailbox; it shares some keys with the first."""
    messages = {f"w{n}": {**message(n, "Work"), "id": f"w{n}"} for n in range(1, 11)}
    messages["m1"] = message(1, "Work")
    return Source("cin_b", "gmail", "grt_2", "Work mail", {"messages": messages})


def bank() -> Source:
    """The bank."""
    rows: dict[str, Json] = {
        f"t{n}": {
            "id": f"t{n}",
            "amount": n * 1.5,
            "category": f"category {n % 14}",
            "sent_at": f"2026-02-{n:02d}T00:00:00Z",
            "note": "invoice paid" if n % 2 else "refund",
        }
        for n in range(1, 29)
    }
    return Source("cin_c", "chase", "grt_3", "Chase", {"transactions": rows})


def world(kind: str = "client") -> FakeRs:
    """A recording server over everything."""
    return FakeRs(
        sources=[personal(), work(), bank()],
        declarations=declarations,
        kind=kind,
        blobs={"blob_1": ("image/png", photo)},
    )


def many(streams: int, connectors: int) -> list[Source]:
    """So many streams without records, in so many sources."""
    return [
        Source(
            f"cin_{n}",
            f"connector{n}",
            f"grt_{n}",
            f"Label {n}",
            {f"stream_number_{n}_{m}": {} for m in range(streams // connectors)},
        )
        for n in range(connectors)
    ]
