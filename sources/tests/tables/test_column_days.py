from zoneinfo import ZoneInfo

import pytest

from pdpp_sources.tables.column_days import day_forms, day_value

NO_FORM = frozenset[str]()
PARIS = ZoneInfo("Europe/Paris")


@pytest.mark.parametrize(
    ("cell", "day"),
    [
        ("2023-01-05", "2023-01-05"),
        ("2022/12/30", "2022-12-30"),
        ("2022.12.30", "2022-12-30"),
        ("2022. 12. 30.", "2022-12-30"),
        ("2023-1-5", "2023-01-05"),
        ("05 Jan 2023", "2023-01-05"),
        ("5-Jan-2023", "2023-01-05"),
        ("05-JAN-23", "2023-01-05"),
        ("31 Dec 1999", "1999-12-31"),
        ("Jan 5, 2023", "2023-01-05"),
        ("January 5th, 2023", "2023-01-05"),
        ("Thursday, January 5, 2023", "2023-01-05"),
        ("Thu 5 Jan 2023", "2023-01-05"),
        ("5. Januar 2023", "2023-01-05"),
        ("Do., 5. März 2023", "2023-03-05"),
        ("5 févr. 2023", "2023-02-05"),
        ("1er août 2023", "2023-08-01"),
        ("5 de enero de 2023", "2023-01-05"),
        ("5 de março de 2023", "2023-03-05"),
        ("5 gennaio 2023", "2023-01-05"),
        ("5 mei 2023", "2023-05-05"),
        ("5 января 2023 г.", "2023-01-05"),
        ("2023年1月5日", "2023-01-05"),
        ("2023년 1월 5일", "2023-01-05"),
        ("2023-Jan-05", "2023-01-05"),
        ("mar. 5 2023", "2023-03-05"),
        ("21Jun2001", "2001-06-21"),
        ("01 NOV 2021", "2021-11-01"),
        ("2023 年 7 月 1 日", "2023-07-01"),
    ],
)
def test_a_day_that_says_itself_what_it_is(cell: str, day: str) -> None:
    assert "date" in day_forms(cell)
    assert day_value(cell, "date", PARIS) == day


@pytest.mark.parametrize(
    ("cell", "instant"),
    [
        ("2023-01-05 10:11:12 UTC", "2023-01-05T10:11:12Z"),
        ("2023-01-05 10:11:12 +0000 UTC", "2023-01-05T10:11:12Z"),
        ("2023-01-05 10:11:12.345 -0500 EST", "2023-01-05T15:11:12.345Z"),
        ("2023-01-05T10:11:12+01:00", "2023-01-05T09:11:12Z"),
        ("2023-01-05 10:11", "2023-01-05T09:11:00Z"),
        ("2023/01/05 10:11:12", "2023-01-05T09:11:12Z"),
        ("Thu, 05 Jan 2023 10:11:12 +0000", "2023-01-05T10:11:12Z"),
        ("Thu, 5 Jan 2023 10:11:12 GMT", "2023-01-05T10:11:12Z"),
        ("Thu Jan  5 10:11:12 2023", "2023-01-05T09:11:12Z"),
        ("Thu Jan 05 10:11:12 +0000 2023", "2023-01-05T10:11:12Z"),
        ("Thu Jan 05 2023 10:11:12 GMT+0100 (CET)", "2023-01-05T09:11:12Z"),
        ("Jan 5, 2023, 3:04:05 PM", "2023-01-05T14:04:05Z"),
        ("January 5, 2023 at 12:04 AM", "2023-01-04T23:04:00Z"),
        ("05 Jan 2023 10:11", "2023-01-05T09:11:00Z"),
        ("5. Januar 2023 um 10:11:12 MEZ", "2023-01-05T09:11:12Z"),
        ("20230105T101112Z", "2023-01-05T10:11:12Z"),
        ("2023-01-05T10:11:12.1234567Z", "2023-01-05T10:11:12.123Z"),
        ("Oct 30, 2023 7:00 AM UTC", "2023-10-30T07:00:00Z"),
    ],
)
def test_an_instant_that_says_itself_what_it_is(cell: str, instant: str) -> None:
    assert day_forms(cell) == {"date-time"}
    assert day_value(cell, "date-time", PARIS) == instant


@pytest.mark.parametrize(
    ("cell", "forms"),
    [
        ("31/12/2022", {"day/month", "day/month time"}),
        ("12/31/2022", {"month/day", "month/day time"}),
        ("05-01-2023", {"day-month", "day-month time", "month-day", "month-day time"}),
        ("5.1.2023", {"day.month.", "day.month. time"}),
        ("12.09.2018, 15:02:23", {"day.month. time"}),
        ("1/13/2023 3:04 PM", {"month/day time"}),
        ("20230105", {"yyyymmdd"}),
        ("20230105101112", {"yyyymmddhhmmss"}),
        ("20231305", NO_FORM),
        ("00010101", NO_FORM),
        ("31.02.2023", NO_FORM),
        ("5 Foo 2023", NO_FORM),
        ("2023-01-05 10:11:12 CST", NO_FORM),
        ("2023-01-05 25:00", NO_FORM),
        ("10 2023", NO_FORM),
        ("1.2.3", NO_FORM),
    ],
)
def test_a_day_that_its_column_has_to_explain(cell: str, forms: set[str] | frozenset[str]) -> None:
    assert day_forms(cell) == forms


@pytest.mark.parametrize(
    ("cell", "form", "value"),
    [
        ("05/01/2023", "day/month", "2023-01-05"),
        ("05/01/2023", "month/day", "2023-05-01"),
        ("05-01-23", "day-month", "2023-01-05"),
        ("12.09.2018, 15:02:23", "day.month. time", "2018-09-12T13:02:23Z"),
        ("1/13/2023 3:04 PM", "month/day time", "2023-01-13T14:04:00Z"),
        ("20230105", "yyyymmdd", "2023-01-05"),
        ("20230105101112", "yyyymmddhhmmss", "2023-01-05T09:11:12Z"),
    ],
)
def test_a_cell_is_read_in_the_form_of_its_column(cell: str, form: str, value: str) -> None:
    assert day_value(cell, form, PARIS) == value
