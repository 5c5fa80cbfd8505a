"""What goes from the records where notes went from a folder."""

from __future__ import annotations

from typing import Any

import pytest

from personal_server.feeds.followed_folders import MOST_GONE, by_stream, followed, whole_names


def a_report(*keys: str, **others: Any) -> dict[str, Any]:
    """An import of notes into one account."""
    one: dict[str, Any] = {
        "connection": {"connection_id": "cin_1"},
        "records": {"notes": list(keys)},
        "skipped": [],
        "streams": {"notes": {"rejected": 0}},
    }
    return {"imports": [one | others.pop("one", {})], "not_read": []} | others


def named(*keys: str) -> tuple[str, ...]:
    return tuple(f"cin_1/notes/{key}" for key in keys)


def test_what_a_whole_reading_lacks_goes() -> None:
    after = followed(named("a", "b/c"), a_report("a", "d"), asked=False, rests=True)
    assert (after.kept, after.gone) == (named("a", "d"), named("b/c"))
    assert by_stream(after.gone) == {("cin_1", "notes"): ["b/c"]}


@pytest.mark.parametrize("half", ["", "cin", "cin_1/notes", "é"])
def test_half_a_name_is_none(half: str) -> None:
    written = "\n".join(("", *named("a/b", "c\u2028"), half)).encode()
    assert whole_names(written) == list(named("a/b", "c\u2028"))
    assert whole_names(written[:-1])[:1] == list(named("a/b"))


@pytest.mark.parametrize(
    "report",
    [
        a_report("a", one={"skipped": [{"code": "damaged_file"}]}),
        a_report("a", one={"streams": {"notes": {"rejected": 1}}}),
        a_report("a", errors=[{"path": "/x", "code": "export_not_recognized"}]),
        {"error": {"code": "export_not_recognized"}},
        {"imports": []},
    ],
    ids=["passed over", "rejected", "refused", "error", "nothing"],
)
def test_where_not_all_was_read_nothing_goes(report: dict[str, Any]) -> None:
    after = followed(named("a", "b"), report, asked=True, rests=True)
    assert (after.gone, set(after.kept)) == ((), set(named("a", "b")))


def test_what_a_reading_lacks_of_a_folder_that_changed_meanwhile_stays() -> None:
    after = followed(named("a", "b"), a_report("a"), asked=True, rests=False)
    assert (after.gone, after.kept, after.is_emptied) == ((), named("a", "b"), False)


def test_a_note_that_no_reader_takes_costs_nothing_the_first_time() -> None:
    report = a_report("a", not_read=[{"path": "/v", "empty": {"count": 1, "files": ["b.md"]}}])
    first = followed(named("a", "b"), report, asked=False, rests=True)
    assert first.gone == ()
    assert set(named("a", "b")) < set(first.kept)
    assert followed(first.kept, report, asked=False, rests=True).gone == named("b")


def test_more_than_are_left_go_only_where_the_owner_asks() -> None:
    before = named(*(str(number) for number in range(MOST_GONE + 2)))
    after = followed(before, a_report("0"), asked=False, rests=True)
    assert (after.is_emptied, after.gone, set(after.kept)) == (True, (), set(before))
    asked = followed(after.kept, a_report("0"), asked=True, rests=True)
    assert (asked.is_emptied, len(asked.gone)) == (False, MOST_GONE + 1)
