"""What is shown of a record in the order of time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.timeline_entries import disclose_entry, timeline_fields
from server.tests.enforcement.mailbox import authority, mails, notes, row

AT = "2026-01-01T10:00:00Z"


def data(source: ReadableSource, **members: Any) -> dict[str, Any]:
    entry = disclose_entry(authority(source), source, row(sent_at=AT, **members))
    return msgspec.to_builtins(entry)["data"]


def test_an_entry_says_when_it_was_what_it_is_called_and_where_it_came_from() -> None:
    entry = disclose_entry(authority(), mails(), row(sent_at=AT, subject="Rain", body="hidden"))
    assert msgspec.to_builtins(entry) == {
        "object": "timeline_entry",
        "id": "m1",
        "record_id": "m1",
        "stream": "mails",
        "data": {"at": AT, "title": "Rain"},
        "connection_id": "cin_a",
        "connector_key": "mail",
        "display_name": "Home",
    }


@pytest.mark.parametrize("subject", [None, " ", 7])
def test_without_a_title_it_begins_with_its_text(subject: object) -> None:
    assert data(mails(), subject=subject, body="Heavy rain") == {"at": AT, "preview": "Heavy rain"}


def test_titles_and_previews_are_cut() -> None:
    assert data(mails(), subject="r" * 300)["title"] == "r" * 200
    assert data(mails(), body=" ", sender="a" * 300)["preview"] == "a" * 200


def test_an_entry_says_who_wrote_it_and_in_which_conversation() -> None:
    said = {"subject": "Rain", "sender": " ", "sender_name": "Ada", "folder": "f" * 300}
    assert data(mails(), **said) == {
        "at": AT,
        "author": "Ada",
        "conversation": "f" * 200,
        "title": "Rain",
    }
    assert data(mails("id", "sent_at", "subject"), **said) == {"at": AT, "title": "Rain"}


def test_what_is_not_granted_is_not_shown() -> None:
    assert data(mails("id", "sent_at"), subject="Rain", body="Heavy") == {"at": AT}


def test_an_entry_is_made_of_time_title_text_and_key() -> None:
    whole = ("id", "subject", "body", "sender", "sender_name", "folder", "sent_at")
    assert timeline_fields(mails()) == whole
    assert timeline_fields(mails("id", "size", "body")) == ("id", "body")
    assert timeline_fields(notes()) == ("id", "said")
