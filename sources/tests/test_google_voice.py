"""Texts, calls and voicemails of Google Voice."""

from __future__ import annotations

from pathlib import Path

from pdpp_kernel.source_item import Skipped
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.google_voice import (
    BO,
    CALLS,
    CY,
    FILES,
    MINE,
    call,
    chat,
    said,
    who,
)


def test_messages_have_their_author_instant_and_words(tmp_path: Path) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    assert {key for key, _ in items} == {"googlevoice"}
    messages = sorted(records_of(items, "messages"), key=lambda each: str(each["sent_at"]))
    assert [(m["sent_at"], m["author"], m["text"]) for m in messages] == [
        ("2024-01-15T08:00:00.120Z", "me", 'Which "oven"?\nStone & warm'),
        ("2024-01-15T08:00:05Z", "Bo Adair", "The stone one."),
        ("2024-01-15T08:00:09Z", "Bo Adair", None),
        ("2024-01-15T09:00:00Z", "Cy Cook", "Hello both"),
        ("2024-01-15T09:00:01Z", "me", "Look"),
        ("2024-01-16T04:00:00Z", "me", "Still warm?"),
    ]
    assert [m["own_number"] for m in messages if m["is_from_me"]] == [MINE] * 3
    assert {m["number"] for m in messages} == {None, BO, CY}
    assert sorted(skips_of(items)) == ["bad_date", "bad_record", "missing_attachment"]


def test_a_conversation_is_known_by_its_numbers_also_where_only_its_owner_wrote(
    tmp_path: Path,
) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    chats = records_of(items, "chats")
    assert sorted((c["name"], c["members"]) for c in chats) == [
        ("Bo Adair", [BO]),
        ("Bo Adair, Cy Cook", [BO, CY]),
    ]
    ids = [m["chat_id"] for m in records_of(items, "messages") if m["chat_name"] == "Bo Adair"]
    assert len(ids) == 4
    assert len(set(ids)) == 1


def test_calls_have_their_direction_length_words_and_sound(tmp_path: Path) -> None:
    calls = records_of(read_path(as_folder(FILES, tmp_path)), "calls")
    missed, placed, heard = sorted(calls, key=lambda each: str(each["direction"]))
    assert (missed["direction"], missed["number"], missed["duration"]) == ("missed", None, None)
    assert (placed["direction"], placed["name"], placed["duration"]) == ("outgoing", "Cy Cook", 2)
    assert (heard["duration"], heard["transcript"]) == (68, "The oven is hot.")
    assert (heard["mime_type"], heard["size_bytes"]) == ("audio/mpeg", 8)


def test_a_file_is_found_without_its_ending(tmp_path: Path) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    shown, lost = records_of(items, "files")
    assert (shown["filename"], shown["mime_type"], shown["size_bytes"]) == (
        "Bo Adair - Text - 2024-01-15T08_00_00Z-3-1.jpg",
        "image/jpeg",
        11,
    )
    assert lost["size_bytes"] is None


def test_a_file_that_no_page_mentions_is_named(tmp_path: Path) -> None:
    stray = f"{CALLS}/Bo Adair - Text - 2024-01-15T08_00_00Z-4-1.jpg"
    items = [item for _, item in read_path(as_folder({**FILES, stray: b"a roll"}, tmp_path))]
    named = items[-1]
    assert isinstance(named, Skipped)
    assert (named.where, named.code) == (stray, "unmentioned_file")
    assert named.position >= max(item.position for item in items)
    assert [item for _, item in read_path(tmp_path, named.position)] == [named]


def test_equal_messages_of_one_instant_are_each_a_record(tmp_path: Path) -> None:
    twice = [said("00:00:00", who(BO, "Bo"), "Yes")] * 2
    (tmp_path / "a.html").write_bytes(chat("Bo", *twice))
    assert len(records_of(read_path(tmp_path), "messages")) == 2


def test_a_link_in_the_words_is_no_file_and_a_number_without_a_name_names_itself(
    tmp_path: Path,
) -> None:
    words = 'See <a href="https://example.org/">https://example.org/</a>'
    (tmp_path / "a.html").write_bytes(chat(BO, said("00:00:00", who(BO, ""), words)))
    (sent,) = records_of(read_path(tmp_path), "messages")
    assert (sent["text"], sent["file_count"]) == ("See https://example.org/", 0)
    assert (sent["author"], sent["chat_name"]) == (BO, BO)


def test_a_call_without_a_time_is_named(tmp_path: Path) -> None:
    (tmp_path / f"{CALLS.replace('/', '-')}.html").write_bytes(call("placed", BO, "Bo", "soon"))
    assert skips_of(read_path(tmp_path)) == ["bad_date"]
