import pytest

from pdpp_sources.file_names import family_name


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Umsaetze_2026-10", "Umsaetze"),
        ("Umsaetze_20261001-20261031", "Umsaetze"),
        ("DE123456789_2026-10-01_2026-10-31", "DE123456789"),
        ("statement-Oct-2026", "statement"),
        ("Kontoauszug_01.10.2026", "Kontoauszug"),
        ("activity Q3 2026", "activity"),
        ("export (1)", "export"),
        ("export - Kopie", "export"),
        ("heart_rate-2023-01-01", "heart_rate"),
        ("2026-10", "2026-10"),
        ("covid19", "covid19"),
        ("order 20261012345", "order 20261012345"),
        ("may", "may"),
        ("marriages", "marriages"),
    ],
)
def test_a_name_without_what_says_of_when_it_is(name: str, family: str) -> None:
    assert family_name(name) == family


def test_a_place_in_a_series_is_left_out_where_there_is_one() -> None:
    assert family_name("StreamingHistory_music_0", of_series=True) == "StreamingHistory_music"
    assert family_name("StreamingHistory_music_0") == "StreamingHistory_music_0"
