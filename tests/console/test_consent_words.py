from __future__ import annotations

import copy
from typing import Any

import pytest

from personal_server.console import consent_words

BEFORE: dict[str, Any] = {
    "client": {"client_id": "cli_1"},
    "access_mode": "continuous",
    "expires_at": "2027-02-19T21:00:00Z",
    "ends": [],
    "sources": [
        {
            "source": {"id": "https://registry.pdpp.dev/connectors/mail"},
            "streams": [
                {"name": "messages", "instance_ids": ["a", "b"], "fields": ["id", "subject"]},
                {"name": "attachments", "instance_ids": ["a"], "fields": ["id"]},
            ],
        }
    ],
}


def test_equal_artifacts_have_no_differences() -> None:
    assert consent_words.differences(BEFORE, BEFORE) == []
    assert consent_words.changed_streams(BEFORE, BEFORE) == frozenset()


ARTIFACT_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"access_mode": "single_use"}, "Access is now for one use."),
    ({"expires_at": None}, "Access now has no end."),
    ({"client": {}}, "What is known of the app changed."),
    ({"ends": ["grt_1"]}, "What ends on approval changed."),
]
STREAM_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"fields": ["id"]}, "messages of mail: 1 field, before 2."),
    ({"instance_ids": ["a"]}, "messages of mail: 1 account, before 2."),
    ({"time_constraint": {"field": "at"}}, "messages of mail: another time window."),
    ({"resources": ["1"]}, "messages of mail: other named records."),
]


@pytest.mark.parametrize(("change", "said"), ARTIFACT_CHANGES)
def test_each_difference_of_the_whole_is_said_in_words(change: dict[str, Any], said: str) -> None:
    assert consent_words.differences(BEFORE, {**BEFORE, **change}) == [said]


@pytest.mark.parametrize(("change", "said"), STREAM_CHANGES)
def test_each_difference_of_a_stream_is_said_in_words(change: dict[str, Any], said: str) -> None:
    after = copy.deepcopy(BEFORE)
    after["sources"][0]["streams"][0].update(change)
    assert consent_words.differences(BEFORE, after) == [said]


def test_a_stream_that_comes_or_goes_is_said() -> None:
    after = copy.deepcopy(BEFORE)
    after["sources"][0]["streams"].pop()
    assert consent_words.differences(BEFORE, after) == ["Left out: attachments of mail."]
    assert consent_words.differences(after, BEFORE) == ["Added: attachments of mail."]


def test_a_changed_stream_is_marked() -> None:
    after = copy.deepcopy(BEFORE)
    after["sources"][0]["streams"][0]["fields"] = ["id"]
    place = ("https://registry.pdpp.dev/connectors/mail", "messages")
    assert consent_words.changed_streams(BEFORE, after) == {place}


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
    assert consent_words.duration_words(duration) == words


def test_a_promise_says_what_happens_to_the_data() -> None:
    promised = {"max_duration": "P30D", "on_expiry": "anonymize"}
    assert "after 30 days your data is made anonymous" in str(consent_words.retention(promised))
    assert consent_words.retention(None) is None
