from zoneinfo import ZoneInfo

import pytest

from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.page_dates import parse_page_date


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("Mar 2, 2024, 1:05:09 PM UTC", "2024-03-02T13:05:09Z"),
        ("Mar 2, 2024, 1:05:09\u202fPM EST", "2024-03-02T18:05:09Z"),
        ("Mar 2, 2024, 12:05:09 AM EST", "2024-03-02T05:05:09Z"),
        ("Mar 2, 2024, 12:05:09 p.m. PST", "2024-03-02T20:05:09Z"),
        ("02.03.2024, 13:05:09 CET", "2024-03-02T12:05:09Z"),
        ("2.3.2024, 13:05:09 MESZ", "2024-03-02T11:05:09Z"),
        ("02/03/2024, 13:05:09 CET", "2024-03-02T12:05:09Z"),
        ("2024/03/02 13:05:09 JST", "2024-03-02T04:05:09Z"),
        ("2 Mar 2024, 13:05:09 GMT+05:30", "2024-03-02T07:35:09Z"),
        ("2 März 2024, 13:05:09 MEZ", "2024-03-02T12:05:09Z"),
        ("2 mars 2024, 13:05:09 CET", "2024-03-02T12:05:09Z"),
        ("2 de mar. de 2024, 13:05:09 BRT", "2024-03-02T16:05:09Z"),
        ("2 мар. 2024 г., 13:05:09 MSK", "2024-03-02T10:05:09Z"),
        ("2 mrt. 2024 13:05:09 CET", "2024-03-02T12:05:09Z"),
        ("2024年3月2日 13:05:09 JST", "2024-03-02T04:05:09Z"),
        ("2024. 3. 2. 오후 1:05:09 KST", "2024-03-02T04:05:09Z"),
        ("2. maaliskuuta 2024 kello 13:05:09 UTC+02", "2024-03-02T11:05:09Z"),
        ("2. märts 2024 kell 13:05:09 UTC+02", "2024-03-02T11:05:09Z"),
        ("Saturday, March 2, 2024 at 1:05:09pm Asia/Kuala_Lumpur", "2024-03-02T05:05:09Z"),
    ],
)
def test_dates_in_many_languages(written: str, instant: str) -> None:
    assert parse_page_date(written) == instant


@pytest.mark.parametrize(
    ("written", "zone", "instant"),
    [
        ("Mar 2, 2024, 1:05:09 PM", "Asia/Tokyo", "2024-03-02T04:05:09Z"),
        ("2 mars 2024, 13:05:09", "Europe/Paris", "2024-03-02T12:05:09Z"),
        ("Mar 2, 2024, 1:05:09 PM IST", "UTC", "2024-03-02T07:35:09Z"),
        ("Mar 2, 2024, 1:05:09 PM IST", "Asia/Jerusalem", "2024-03-02T11:05:09Z"),
        ("Jul 2, 2024, 1:05:09 PM IST", "Europe/Dublin", "2024-07-02T12:05:09Z"),
        ("2 במרץ 2024, 13:05:09 IST", "UTC", "2024-03-02T11:05:09Z"),
        ("Mar 2, 2024, 1:05:09 PM CST", "Europe/Paris", "2024-03-02T19:05:09Z"),
        ("Mar 2, 2024, 1:05:09 PM CST", "Asia/Shanghai", "2024-03-02T05:05:09Z"),
        ("2024年3月2日 13:05:09 CST", "UTC", "2024-03-02T05:05:09Z"),
        ("Jul 2, 2024, 1:05:09 PM BST", "Europe/Paris", "2024-07-02T12:05:09Z"),
        ("Mar 2, 2024, 1:05:09 PM PST", "Asia/Manila", "2024-03-02T05:05:09Z"),
        ("Mar 2, 2024, 1:05:09 PM EST", "Asia/Tokyo", "2024-03-02T18:05:09Z"),
    ],
)
def test_zones_of_several_meanings_are_the_owner_s_or_the_language_s(
    written: str, zone: str, instant: str
) -> None:
    assert parse_page_date(written, ZoneInfo(zone)) == instant


@pytest.mark.parametrize(
    "written",
    [
        "31 Feb 2024, 13:05:09 CET",
        "2 Mar 2024, 25:05:09 CET",
        "Mar 2, 2024",
        "soon, at 13:05:09",
        "2 марта 2024 вечера 1:05:09",  # which half of the day is not known
        "2 de marzo de 2024 tarde 1:05:09",
        "2 Mar 2024 1:05:09 America/Argentina",  # which has many zones
    ],
)
def test_what_is_no_date_is_refused(written: str) -> None:
    with pytest.raises(BadRecord) as caught:
        parse_page_date(written)
    assert caught.value.code == "bad_date"
