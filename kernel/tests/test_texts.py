from __future__ import annotations

import json
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from pdpp_kernel.texts import (
    EXACT,
    LISTED,
    CatalogueText,
    Date,
    Day,
    Joined,
    Minute,
    Size,
    bounded,
    counted,
    counted_texts,
    date_of,
    day_of_text,
    figure,
    listed,
    local_moment,
    message,
    moment_of,
    parse_text,
    plural,
    render_text,
    span_of_texts,
    start_of_day,
    text_of,
)


def test_days_and_counts_are_written_for_people() -> None:
    assert str(Day(1_787_443_200_000_000_000)) == "23 Aug 2026"
    assert str(Minute(1_787_493_900_000_000_000)) == "23 Aug 2026, 14:05 UTC"
    assert str(day_of_text("2026-08-23T01:00:00+02:00")) == "22 Aug 2026"
    assert str(day_of_text("2026-08-23")) == "23 Aug 2026"
    assert str(day_of_text("unclear")) == "unclear"
    assert str(counted(1, "record")) == "1 record"
    assert str(counted(12_345, "record")) == "12,345 records"
    assert str(counted(0, "entry", "entries")) == "0 entries"


def test_a_span_says_once_what_its_days_have_in_common() -> None:
    assert str(span_of_texts("2026-05-07", "2026-11-18")) == "7 May – 18 Nov 2026"
    assert str(span_of_texts("2025-05-07", "2026-11-18")) == "7 May 2025 – 18 Nov 2026"
    assert str(span_of_texts("2026-05-07", "2026-05-07T09:00:00Z")) == "7 May 2026"
    assert str(span_of_texts("unclear", "2026-11-18")) == "unclear – 18 Nov 2026"


def test_a_long_list_names_a_few_and_counts_the_rest() -> None:
    assert str(listed("abc")) == "a, b, c"
    assert str(listed("abcdef")) == "a, b, c, d, e, f"
    assert str(listed("abcdefg")) == "a, b, c, d, e and 2 more"


def test_a_text_crosses_into_another_process_with_what_it_was_made_of() -> None:
    inner = text_of("100 % of it is gone.")
    lines = plural("one line", "%(num)s lines", 2_000)
    said = message("%(file)s: %(inner)s (%(lines)s)", file="%s.csv", inner=inner, lines=lines)
    back = parse_text(json.loads(json.dumps(render_text(said))))
    assert isinstance(back, CatalogueText)
    assert back == said == "%s.csv: 100 % of it is gone. (2,000 lines)"
    assert (back.text, back.values, back.plural) == (said.text, said.values, None)
    assert isinstance(back.values["inner"], CatalogueText)
    assert type(back.values["file"]) is str
    assert parse_text(render_text("a name")) == "a name"


@pytest.mark.parametrize(
    ("size_bytes", "written"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 KB"),
        (99_900, "99.9 KB"),
        (100_000, "100 KB"),
        (999_999, "1,000 KB"),
        (1_000_000, "1.0 MB"),
        (100_000_000, "100 MB"),
        (1_000_000_000, "1.0 GB"),
        (100_000_000_000, "100.0 GB"),
        (1_234_500_000_000, "1,234.5 GB"),
    ],
)
def test_a_size_is_in_the_unit_that_reads_best(size_bytes: int, written: str) -> None:
    assert str(Size(size_bytes)) == written


def test_a_text_of_the_catalogue_is_one_already() -> None:
    told = message("50 %% of %(what)s", what="it")
    assert text_of(told) is told


@pytest.mark.parametrize(
    ("num", "said"), [(0, "0 lines"), (1, "one line"), (2, "2 lines"), (2_000, "2,000 lines")]
)
def test_a_text_by_number_has_one_for_one_and_one_for_all_others(num: int, said: str) -> None:
    text = plural("one line", "%(num)s lines", num)
    assert (text, text.text, text.plural) == (said, "one line", "%(num)s lines")
    assert (parse_text(render_text(text)), text.values) == (said, {"num": num})


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("day", "5 Mar 2026"),
        ("named_day", "Thu 05 Mar 2026"),
        ("month", "Mar 2026"),
        ("year", "2026"),
        ("short_day", "Thu"),
        ("short_month", "Mar"),
    ],
)
def test_a_date_is_said_in_its_unit(unit: str, said: str) -> None:
    assert str(Date(date(2026, 3, 5), unit)) == said


def test_a_count_is_exact_up_to_a_point() -> None:
    assert (LISTED, EXACT) == (5, 10_000)
    assert [figure(bounded(count)) for count in (9_999, 10_000, 10_001)] == [
        "9,999",
        "10,000",
        "10,000+",
    ]


def test_texts_stand_in_a_row_with_their_numbers_apart() -> None:
    assert str(Joined((1_000, "a", Size(5)))) == "1,000, a, 5 B"
    assert str(Joined(("a", "b"), " or ")) == "a or b"
    assert counted_texts("entry", "entries") == ("%(num)s entry", "%(num)s entries")
    assert counted_texts("record") == ("%(num)s record", "%(num)s records")


@pytest.mark.parametrize(
    ("day", "zone", "begun"),
    [
        (0, "UTC", "1970-01-01T00:00:00"),
        (20_520, "America/Los_Angeles", "2026-03-08T08:00:00"),
        (20_521, "America/Los_Angeles", "2026-03-09T07:00:00"),
        (17_839, "America/Sao_Paulo", "2018-11-04T03:00:00"),
    ],
)
def test_a_day_begins_at_the_midnight_of_its_zone(day: int, zone: str, begun: str) -> None:
    start = start_of_day(day, ZoneInfo(zone))
    assert moment_of(start) == datetime.fromisoformat(begun).replace(tzinfo=UTC)
    assert moment_of(start + 999_999_999) == moment_of(start)
    assert date_of(day) == Date(date.fromisoformat(begun[:10]))


def test_a_moment_at_the_end_of_the_calendar_stays_in_utc() -> None:
    last = int(datetime(9999, 12, 31, 23, tzinfo=UTC).timestamp()) * 10**9
    assert local_moment(last, ZoneInfo("Asia/Tokyo")) == moment_of(last)
    assert local_moment(last, ZoneInfo("Asia/Tokyo")).tzinfo is UTC
    assert local_moment(0, ZoneInfo("Asia/Tokyo")).isoformat() == "1970-01-01T09:00:00+09:00"


def test_values_that_no_other_process_needs_are_left_behind() -> None:
    said = message("%(day)s: %(text)s, %(num)s", day=Day(0), text="a", num=2)
    assert render_text(said) == ["%(day)s: %(text)s, %(num)s", {"text": "a", "num": 2}, None]


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ("unclear", "unclear", "unclear"),
        ("2026-05-07", "unclear", "7 May 2026 – unclear"),
        ("2026-05-07", "2026-05-07", "7 May 2026"),
        ("1970-01-01", "1970-01-01T00:00:00Z", "1 Jan 1970"),
    ],
)
def test_a_span_of_other_texts_names_both_or_the_one(first: str, last: str, said: str) -> None:
    assert str(span_of_texts(first, last)) == said
