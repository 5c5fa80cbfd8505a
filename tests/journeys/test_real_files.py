"""Files that nobody in the project wrote, fetched from package registries by version and hash."""

from collections import Counter
from itertools import islice
from pathlib import Path
from runpy import run_path

import pytest

from bench import samples
from bench.workspace import said, workspace
from pdpp_kernel.source_item import Skipped, SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.common.source import SourceReader
from personal_server.domain.declaration_document import parse_declaration
from sources.tests.reading import checked, read_path, records_of


def test_4150_real_mails_are_all_read() -> None:
    items = read_path(samples.mailbox().path)
    assert not [item for _, item in items if isinstance(item, Skipped)]
    messages = records_of(items, "messages")
    assert len({message["id"] for message in messages}) == 4150
    assert len(records_of(items, "attachments")) == 158
    assert all(message["sent_at"] and message["body"] for message in messages)
    assert len({message["thread_id"] for message in messages}) < 3000
    # as `email` counts those with In-Reply-To or References, be it words
    assert sum(message["is_reply"] for message in messages) == 2183


def test_every_real_mail_that_is_broken_is_read() -> None:
    items = [item for sample in samples.broken_mails() for item in read_path(sample.path)]
    assert not [item for _, item in items if isinstance(item, Skipped)]
    assert len(records_of(items, "messages")) == 22
    assert all(message["sent_at"] and message["body"] for message in records_of(items, "messages"))
    assert not [a for a in records_of(items, "attachments") if "\ufffd" in (a["filename"] or "")]


def test_every_real_statement_gives_its_accounts_or_says_why_not() -> None:
    items = read_path(samples.statements().path)
    assert len(records_of(items, "accounts")) >= 15
    assert len(records_of(items, "transactions")) >= 18
    assert len(records_of(items, "holdings")) >= 10
    reasons = {item.code for _, item in items if isinstance(item, Skipped)}
    bad = {"bad_record", "bad_date", "bad_amount", "empty_statement"}
    assert reasons <= bad | {"duplicate", "duplicate_id"}


def test_an_export_of_claude_that_others_wrote() -> None:
    items = read_path(samples.claude_export().path)
    assert not [item for _, item in items if isinstance(item, Skipped)]
    assert len(records_of(items, "conversations")) == 3
    assert len(records_of(items, "messages")) == 4
    assert len(records_of(items, "projects")) == 1


@pytest.mark.long
def test_real_calendars_give_their_events_or_say_why_not() -> None:
    items = [item for sample in samples.calendars() for item in read_path(sample.path)]
    assert len(records_of(items, "events")) > 6000
    reasons = {item.code for _, item in items if isinstance(item, Skipped)}
    unknown = {"unknown_rule", "agenda_cut", "empty_busy_times"}
    unknown |= {"unknown_record_type"}  # kinds of entries that no program of calendars shows
    assert reasons <= unknown | {"bad_date", "truncated", "duplicate", "duplicate_id"}


def test_real_address_books_give_their_people() -> None:
    items = read_path(samples.address_books().path)
    assert len(records_of(items, "contacts")) == 19


@pytest.mark.long
def test_real_chats_are_read_in_every_order_of_dates() -> None:
    items = read_path(samples.chats().path)
    assert not [item for _, item in items if isinstance(item, Skipped)]
    assert len(records_of(items, "messages")) == 3120
    assert len(records_of(items, "chats")) == 5


def test_real_messages_in_a_workspace_keep_their_words() -> None:
    items = read_path(workspace(25).path)
    assert not [item for _, item in items if isinstance(item, Skipped)]
    wanted = [m["text"] or None for _, messages in islice(said(), 25) for m in messages]
    assert Counter(m["text"] for m in records_of(items, "messages")) == Counter(wanted)
    assert all(message["author_name"] for message in records_of(items, "messages"))


def test_an_export_of_telegram_that_others_made() -> None:
    items = read_path(samples.telegram_export().path)
    assert [each["name"] for each in records_of(items, "chats")] == [
        "Gaming Crew",
        "Saved Messages",
    ]
    assert len(records_of(items, "messages")) == 14
    files = records_of(items, "files")
    assert len(files) == 5
    assert {each["filename"] for each in files if "blob_ref" not in each} == {"missing.pdf"}
    assert [item.code for _, item in items if isinstance(item, Skipped)] == ["missing_attachment"]


def test_the_template_keeps_the_contract(tmp_path: Path) -> None:
    facts = run_path("sources/src/pdpp_sources/source_template.py")
    source: SourceReader = facts["ViewingsSource"]()
    lines = ["Title,Date", "Emma: Part 1,2024-01-05", "Emma: Part 1,2024-01-05", "odd,soon"]
    (tmp_path / "export.csv").write_text("\n".join(lines))
    assert parse_declaration(source.declaration).connector_key == "viewings"
    with open_export(tmp_path / "export.csv") as export:
        assert source.recognize(export) is not None
        record, again, skipped = checked(source, source.read(export))
    assert isinstance(record, SourceRecord)
    assert record.data["series"] == "Emma"
    assert isinstance(again, Skipped)
    assert isinstance(skipped, Skipped)
    assert (again.code, skipped.code) == ("duplicate", "bad_date")
