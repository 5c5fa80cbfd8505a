from __future__ import annotations

import dataclasses

from msgspec.structs import replace

from personal_server.enforcement.timeless_sources import without_time
from server.tests.enforcement.mailbox import mails, notes


def test_named_streams_without_time_are_told_each_and_others_together() -> None:
    timeless = [notes(), notes(connection_id="cin_b"), mails("id")]
    each = without_time(iter(timeless), timeless, ("notes",))
    assert [(warning.connection_id, warning.detail) for warning in each] == [
        ("cin_a", {"stream": "notes", "reason": "no_event_time"}),
        ("cin_b", {"stream": "notes", "reason": "no_event_time"}),
        ("cin_a", {"stream": "mails", "reason": "no_event_time"}),
    ]
    (together,) = without_time(iter(timeless), timeless, ())
    assert together.code == "source_skipped_not_applicable"
    assert together.detail == {"streams": ["mails", "notes"], "reason": "no_event_time"}
    assert without_time([], timeless, ()) == []


def test_streams_of_which_others_take_part_and_those_not_named_are_told() -> None:
    timed, timeless = mails(connection_id="cin_b"), [mails("id"), notes()]
    (told,) = without_time(timeless, [timed, *timeless], ())
    detail = {"streams": ["mails", "notes"], "reason": "no_event_time", "partly": ["mails"]}
    assert told.detail == detail
    many = [
        dataclasses.replace(notes(), declared=replace(notes().declared, name=f"s{n:02}"))
        for n in range(15)
    ]
    (told,) = without_time(many, many, ())
    assert told.detail is not None
    assert (len(told.detail["streams"]), told.detail["omitted"]) == (12, 3)
