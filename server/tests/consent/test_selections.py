"""The shape of a selection request, row by row of the validation table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.oauth_errors import InvalidAuthorizationDetails
from personal_server.consent.selections import parse_selections

TYPE = "https://pdpp.dev/data-access"


def entry(**over: Any) -> dict[str, Any]:
    found = {
        "type": TYPE,
        "source": {"id": "https://example.com/mail"},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{"name": "messages"}],
        **over,
    }
    return {name: value for name, value in found.items() if value != "absent"}


def stream(**over: Any) -> dict[str, Any]:
    return entry(streams=[{"name": "messages", **over}])


def other(**over: Any) -> dict[str, Any]:
    return entry(source={"id": "https://example.com/notes"}, **over)


def refusal(*entries: Any) -> InvalidAuthorizationDetails:
    with pytest.raises(InvalidAuthorizationDetails) as caught:
        parse_selections(list(entries))
    return caught.value


def test_a_full_entry_is_read() -> None:
    selection = parse_selections(
        json.dumps(
            [
                entry(
                    source={"id": "https://example.com/mail", "kind": "connector"},
                    purpose_description="To answer",
                    retention={"max_duration": "P30D", "on_expiry": "delete"},
                    client_claims={"commitments": ["No sharing"]},
                    events=True,
                    streams=[
                        {
                            "name": "messages",
                            "necessity": "optional",
                            "instance_ids": ["cin_1"],
                            "fields": ["id"],
                            "time_range": {"since": "2026-01-01", "until": "2026-02-01T00:00:00Z"},
                            "resources": ["m1"],
                        }
                    ],
                )
            ]
        )
    )[0]
    assert selection.commitments == ("No sharing",)
    assert selection.streams[0].required is False
    assert selection.streams[0].time_range is not None
    assert selection.streams[0].time_range.until_ns is not None


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([], "malformed"),
        ([entry()] * 17, "malformed"),
        (["x"], "malformed"),
        ([entry(extra=1)], "malformed"),
        ([entry(type="absent")], "malformed"),
        ([entry(source="absent")], "malformed"),
        ([entry(source={"id": ""})], "malformed"),
        ([entry(source={"id": "https://a.example", "kind": "other"})], "malformed"),
        ([entry(source={"id": "https://a.example", "x": 1})], "malformed"),
        ([entry(access_mode="once")], "malformed"),
        ([entry(streams=[])], "malformed"),
        ([entry(streams=None)], "malformed"),
        ([stream(fields=[])], "malformed"),
        ([stream(fields=["id", "id"])], "malformed"),
        ([stream(fields="id")], "malformed"),
        ([stream(instance_ids=[])], "malformed"),
        ([stream(resources=[1])], "malformed"),
        ([stream(only={})], "malformed"),
        ([stream(only=["from"])], "malformed"),
        ([stream(only={"from": []})], "malformed"),
        ([stream(only={"from": "a"})], "malformed"),
        ([stream(only={"from": [1.5]})], "malformed"),
        ([stream(only={"from": ["a", "a"]})], "malformed"),
        ([stream(only={"from": ["a" * 201]})], "malformed"),
        ([stream(only={"from": list(range(1_001))})], "malformed"),
        ([stream(only={"": ["a"]})], "malformed"),
        ([stream(only={str(n): ["a"] for n in range(9)})], "malformed"),
        ([stream(necessity="maybe")], "malformed"),
        ([stream(name="")], "malformed"),
        ([entry(purpose_description="")], "malformed"),
        ([entry(purpose_description="x" * 1_001)], "malformed"),
        ([entry(client_claims={"commitments": []})], "malformed"),
        ([entry(client_claims={"commitments": ["a"], "x": 1})], "malformed"),
        ([entry(type="https://other.example/type")], "unsupported_type"),
        ([entry(source={"id": "mail"})], "not_a_uri"),
        ([entry(purpose_code="assist")], "not_a_uri"),
        ([entry(streams="absent")], "exclusive_members"),
        ([entry(selection_preset="all")], "exclusive_members"),
        ([stream(fields=["id"], view="v")], "exclusive_members"),
        ([entry(streams=[{"name": "*"}, {"name": "a"}])], "wildcard_not_alone"),
        ([entry(streams=[{"name": "a"}, {"name": "a"}])], "duplicate_stream"),
        ([stream(time_range={})], "invalid_time_range"),
        ([stream(time_range={"since": "2026-01-01T00:00:00"})], "invalid_time_range"),
        ([stream(time_range={"since": "soon"})], "invalid_time_range"),
        ([stream(time_range={"since": "2026-01-02", "until": "2026-01-02"})], "invalid_time_range"),
        ([entry(retention={"max_duration": "30d", "on_expiry": "delete"})], "invalid_retention"),
        ([entry(retention={"max_duration": "PT", "on_expiry": "delete"})], "invalid_retention"),
        ([entry(retention={"max_duration": "P", "on_expiry": "delete"})], "invalid_retention"),
        ([entry(), other(access_mode="single_use")], "mixed_access_mode"),
        ([entry(), entry()], "duplicate_source"),
        (
            [entry(), other(purpose_code="https://pdpp.dev/purpose/ai_training")],
            "ai_training_not_alone",
        ),
    ],
)
def test_each_fault_of_shape_has_its_reason(entries: list[Any], reason: str) -> None:
    assert refusal(*entries).reason == reason


def test_a_fault_says_where_it_is() -> None:
    wrong = stream(time_range={"since": "soon"})
    assert refusal(wrong).param == "/0/streams/0/time_range"
    assert refusal(entry(), other(streams=[{"name": 5}])).param == "/1/streams/0/name"


@pytest.mark.parametrize("text", ["", "{}", "nonsense", "[" * 10_000, '["\\ud800"]', "null"])
def test_text_that_is_no_array_is_malformed(text: str) -> None:
    with pytest.raises(InvalidAuthorizationDetails) as caught:
        parse_selections(text)
    assert caught.value.reason == "malformed"


def test_more_than_64_kib_is_malformed() -> None:
    long = entry(streams=[{"name": "a", "resources": [f"{n:0100}" for n in range(999)]}])
    assert refusal(long).reason == "malformed"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(st.lists(json_values, max_size=3), st.sampled_from([*entry()]), json_values)
def test_any_json_parses_or_is_refused(values: list[Any], member: str, value: Any) -> None:
    for entries in (values, [entry(**{member: value})], [stream(fields=value)]):
        assert outcome(entries)


def outcome(entries: list[Any]) -> object:
    """The selections, or the reason why not."""
    try:
        return parse_selections(entries)
    except InvalidAuthorizationDetails as refused:
        return refused.reason
