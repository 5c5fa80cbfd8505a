"""Related records inside records."""

from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import DIARY, LETTERS, LIST, NARROW, client, stream_grant


def test_expansion_reads_children_through_their_own_grant(door: Door) -> None:
    authority = client(stream_grant(), stream_grant("attachments", fields=("id", "entry_id")))
    reply = door.get(f"{LIST}?expand=attachments&connection_id={DIARY}", authority)
    children = reply.data[-1]["expanded"]["attachments"]
    assert [c["id"] for c in children["data"]][:3] == ["a1", "a10", "a11"]
    assert all(sorted(c["data"]) == ["entry_id", "id"] for c in children["data"])
    assert (len(children["data"]), children["has_more"]) == (10, True)
    more = door.get(children["url"], authority)
    assert len(more.data) == 12
    assert reply.data[0]["expanded"]["attachments"] == {
        "object": "list",
        "data": [],
        "has_more": False,
    }


def test_a_limit_asks_for_its_relation(door: Door) -> None:
    authority = client(stream_grant(), stream_grant("attachments"))
    reply = door.get(f"{LIST}/e1?expand_limit[attachments]=3", authority)
    assert len(reply.body["expanded"]["attachments"]["data"]) == 3


def test_a_has_one_relation_gives_a_record_or_null(door: Door) -> None:
    authority = client(stream_grant(), stream_grant("volumes"))
    reply = door.get(f"{LIST}?expand=volume&connection_id={DIARY}", authority)
    assert [r["expanded"]["volume"] and r["expanded"]["volume"]["id"] for r in reply.data] == [
        None,
        "v1",
        "v1",
    ]


def test_what_limits_related_records_is_said_once(door: Door) -> None:
    limited = stream_grant("attachments", resources=("a1", "a10"))
    reply = door.get(f"{LIST}/e1?expand=attachments", client(stream_grant(), limited))
    assert reply.warnings == ["limited_access"]
    both = client(stream_grant(resources=("e1",)), limited)
    assert door.get(f"{LIST}?expand=attachments", both).warnings == ["limited_access"]
    assert door.get(f"{LIST}/e1", client(stream_grant(), limited)).warnings == []


def test_the_key_that_joins_must_be_granted(door: Door) -> None:
    authority = client(stream_grant(fields=NARROW), stream_grant("volumes"))
    assert door.refusal(f"{LIST}?expand=volume", authority) == (403, "field_not_granted", "expand")


def test_connections_without_the_related_stream_are_said_to_be_skipped(door: Door) -> None:
    authority = client(stream_grant(), stream_grant("volumes", (DIARY,)))
    reply = door.get(f"{LIST}?expand=volume", authority)
    assert reply.warnings == ["source_skipped_not_applicable"]
    warning = reply.body["meta"]["warnings"][0]
    assert warning["connection_id"] == LETTERS
    assert warning["detail"]["stream"] == "volumes"


def test_without_the_related_stream_a_list_is_empty_and_one_record_none(door: Door) -> None:
    related = (stream_grant("volumes", (DIARY,)), stream_grant("attachments", (DIARY,)))
    authority = client(stream_grant(), *related)
    reply = door.get(f"{LIST}?expand=volume,attachments", authority)
    found = [each["expanded"] for each in reply.data if each["connection_id"] == LETTERS]
    nothing: dict[str, object] = {"object": "list", "data": [], "has_more": False}
    assert found == [{"volume": None, "attachments": nothing}] * 2


def test_related_records_are_logged_with_those_that_are_shown(door: Door) -> None:
    attached = stream_grant("attachments", fields=("id", "entry_id"))
    authority = client(stream_grant(), stream_grant("volumes", (DIARY,)), attached)
    asked = f"{LIST}?expand=volume,attachments&connection_id={DIARY}&order=asc"

    def told(limit: int) -> dict[str, tuple[int, tuple[str, ...], tuple[str, ...]]]:
        reply = door.get(f"{asked}&limit={limit}", authority)
        return {
            each.source.stream: (each.record_count, each.keys, each.fields)
            for each in reply.disclosed
            if each.source.stream != "entries"
        }

    attachments = tuple(sorted(f"a{number}" for number in range(1, 13))[:10])
    first = {
        "volumes": (1, ("v1",), ("id", "name")),
        "attachments": (10, attachments, ("id", "entry_id")),
    }
    assert told(1) == first
    assert told(3) == {**first, "volumes": (2, ("v1", "v1"), ("id", "name"))}
    latest = door.get(f"{LIST}?expand=attachments&connection_id={DIARY}&limit=1", authority)
    assert [each.source.stream for each in latest.disclosed] == ["entries"]
