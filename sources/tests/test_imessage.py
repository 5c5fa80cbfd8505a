from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from pdpp_sources.imessage import archived_text
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import imessage
from sources.tests.specimens.files import as_folder


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Data]:
    """The records of the specimen by their id."""
    items = read_path(as_folder(imessage.FILES, tmp_path))
    return {record["id"]: record for record in records_of(items)}


def test_a_message_has_its_words_wherever_they_stand(found: dict[str, Data]) -> None:
    assert found["M1"]["text"] == "Is the starter awake?"
    assert (found["M2"]["text"], found["M2"]["author"]) == ("It doubled — twice!", "me")
    assert found["M3"]["text"] == imessage.LONG.strip()
    assert (found["M3"]["author"], found["M3"]["reply_to_id"]) == (imessage.BOB, "M1")
    assert found["M1"]["sent_at"] == "2024-03-03T08:01:00Z"


def test_dates_of_old_versions_count_seconds(found: dict[str, Data]) -> None:
    assert found["M12"]["sent_at"] == "2016-11-05T00:53:20Z"


def test_reactions_name_their_message(found: dict[str, Data]) -> None:
    assert (found["M4"]["message_id"], found["M4"]["reaction"]) == ("M2", "liked")
    assert found["M5"]["reaction"] == "🍞"
    assert (found["M6"]["reaction"], found["M6"]["is_taken_back"]) == ("liked", True)


def test_what_happened_is_told_apart_from_what_was_said(found: dict[str, Data]) -> None:
    assert (found["M7"]["kind"], found["M7"]["text"]) == ("name_changed", "Bread people")
    assert (found["M10"]["kind"], found["M10"]["edited_at"]) == ("unsent", "2024-03-03T08:15:00Z")


def test_groups_have_their_name_and_members(found: dict[str, Data]) -> None:
    group = found["iMessage;+;chat7"]
    assert (group["name"], group["kind"]) == ("Bread people", "group")
    assert group["members"] == [imessage.ANN, imessage.BOB]
    assert found["M2"]["chat_id"] == "iMessage;+;chat7"


def test_files_come_with_their_bytes_where_the_folder_is_there(
    found: dict[str, Data], tmp_path: Path
) -> None:
    assert found["A1"]["blob_ref"]["size_bytes"] == 2
    assert "blob_ref" not in found["A2"]
    skips = skips_of(read_path(tmp_path / "Messages" / "chat.db"))
    assert skips.count("missing_attachment") == 2
    assert skips.count("unreadable_text") == 1


@pytest.mark.parametrize("words", ["", "a", "ü" * 63, "ü" * 64, "x" * 300, "y" * 70_000])
def test_archived_words_of_any_length_are_read(words: str) -> None:
    size = len(words.encode())
    head = imessage.archived("").partition(b"\x84\x01+")[0] + b"\x84\x01+"
    long = b"\x82" + size.to_bytes(4, "little") + words.encode()
    assert archived_text(imessage.archived(words) if size < 2**16 else head + long) == words


@pytest.mark.parametrize("cut", range(12, 120, 9))
def test_no_cut_of_an_archive_makes_it_fail(cut: int) -> None:
    words = archived_text(imessage.archived("Rye")[:cut])
    assert words is None or "Rye".startswith(words)
