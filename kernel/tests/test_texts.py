from __future__ import annotations

import json

import pytest

from pdpp_kernel.texts import (
    CatalogueText,
    Day,
    Minute,
    Size,
    counted,
    day_of_text,
    listed,
    message,
    parse_text,
    plural,
    render_text,
    span_of_texts,
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
