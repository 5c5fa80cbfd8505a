from __future__ import annotations

import pytest

from personal_server.console import consent_words


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        ("P30D", "30 days"),
        ("P1Y6M", "1 year 6 months"),
        ("P2W", "2 weeks"),
        ("PT12H", "12 hours"),
        ("soon", "soon"),
    ],
)
def test_durations_are_words(duration: str, words: str) -> None:
    assert str(consent_words.duration_words(duration)) == words


def test_a_promise_says_what_happens_to_the_data() -> None:
    promised = {"max_duration": "P30D", "on_expiry": "anonymize"}
    assert "after 30 days your data is made anonymous" in str(consent_words.retention(promised))
    assert consent_words.retention(None) is None
