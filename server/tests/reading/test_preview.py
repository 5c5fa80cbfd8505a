from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_kernel.errors import QueryTimeout
from pdpp_kernel.values import render_instant
from personal_server.consent.choices import Choices, EntryChoice, StreamChoice
from personal_server.granting.audit import Acting
from personal_server.granting.decisions import Granting
from personal_server.reading.ports import ReadPorts
from personal_server.reading.preview import Evidence, EvidenceReader
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from server.tests.console.household import (
    CHECKING,
    DAY,
    HOME,
    WORK,
    Household,
    bank_request,
    mail_request,
    mails,
)

OWNER = Acting("owner")


@pytest.fixture
def house() -> Household:
    return Household()


def gathered(
    house: Household,
    request: list[dict[str, object]],
    connections: frozenset[str] | None = None,
    **choice: Any,
) -> Any:
    granting = Granting(house.authorization, house.store.catalogs, house.clock, house.random_bytes)
    handle = house.ask(request).removeprefix("/consent/")
    review = granting.view(handle, OWNER)
    if choice:
        streams = {"messages": StreamChoice(wanted=True, **choice)}
        entry = EntryChoice(keep=True, connections=connections, streams=streams)
        review = granting.choose(handle, Choices(entries={0: entry}), OWNER)
    return house.store.evidence.gather(review.prospective())


def test_counts_and_spans_are_those_of_the_records(house: Household) -> None:
    found = gathered(house, mail_request(instance_ids=[HOME, WORK]))
    assert {place: evidence.count for place, evidence in found.items()} == {
        (HOME, "messages"): 40,
        (WORK, "messages"): 12,
    }
    assert not any(evidence.at_least for evidence in found.values())
    home = found[HOME, "messages"]
    assert (home.earliest, home.latest) == ("2026-05-07T11:06:40.000Z", "2026-11-18T11:06:40.000Z")
    assert home.synced_at_ns == house.clock.now_ns - 86_400 * 10**9


def test_they_follow_the_choices(house: Household) -> None:
    found = gathered(house, mail_request(), since="2026-10-19")
    assert found[HOME, "messages"].count == 7
    found = gathered(house, mail_request(time_range={"until": "2026-05-20"}))
    assert found[HOME, "messages"].count == 3


def test_samples_hold_the_granted_fields_only(house: Household) -> None:
    found = gathered(house, mail_request(fields=["subject"]))
    samples = found[HOME, "messages"].samples
    assert len(samples) == 3
    assert {name for sample in samples for name in sample} == {"id", "sent_at", "subject"}


def test_evidence_shows_no_sample_in_its_representation() -> None:
    assert "secret" not in repr(Evidence(1, samples=({"x": "secret"},)))


def test_a_package_is_counted_source_by_source(house: Household) -> None:
    found = gathered(house, [*mail_request(), *bank_request()])
    assert found[CHECKING, "transactions"].count == 30
    assert found[CHECKING, "transactions"].earliest == "2026-08-23"


SHARED = Household()
DAYS = st.lists(st.integers(-210, 5), min_size=4, max_size=4, unique=True).map(sorted)


@settings(max_examples=60)
@given(DAYS, st.sampled_from([{HOME}, {WORK}, {HOME, WORK}]))
def test_counts_spans_and_samples_equal_a_look_at_every_record(
    days: list[int], chosen: set[str]
) -> None:
    asked_from, since, until, asked_to = (
        render_instant(SHARED.clock.now_ns + day * DAY)[:10] for day in days
    )
    request = mail_request(time_range={"since": asked_from, "until": asked_to})
    request[0]["streams"][0]["instance_ids"] = [HOME, WORK]  # type: ignore[index]
    narrowed = {"since": since, "until": until}
    found = gathered(SHARED, request, connections=frozenset(chosen), **narrowed)
    assert {connection for connection, _ in found} == chosen
    for connection in chosen:
        held = mails(SHARED.clock.now_ns, 40 if connection == HOME else 12)
        times = sorted(m["sent_at"] for m in held if since <= m["sent_at"] < until)
        evidence = found[connection, "messages"]
        assert evidence.count == len(times)
        assert (evidence.earliest, evidence.latest) == (
            (times[0], times[-1]) if times else (None, None)
        )
        ids = {m["id"] for m in held if since <= m["sent_at"] < until}
        assert {sample["id"] for sample in evidence.samples} <= ids
        assert len(evidence.samples) == min(3, len(times))


@dataclass
class SlowMonotonic:
    """A clock that has used up the budget after the first look."""

    looks: int = 0
    seconds: list[float] = field(default_factory=lambda: [0.0, 10.0])

    def __call__(self) -> float:
        self.looks += 1
        return self.seconds[min(self.looks, len(self.seconds)) - 1]


def test_past_the_budget_it_says_at_least(house: Household) -> None:
    granting = Granting(house.authorization, house.store.catalogs, house.clock, house.random_bytes)
    house.fill(WORK, "messages", _many(house))
    handle = house.ask(mail_request(instance_ids=[WORK])).removeprefix("/consent/")
    ports: ReadPorts = house.reads
    reader = EvidenceReader(ports, house.store.declarations, SlowMonotonic())
    found = reader.gather(granting.view(handle, OWNER).prospective())
    assert found[WORK, "messages"].count == 100
    assert found[WORK, "messages"].at_least


def _many(house: Household) -> list[dict[str, Any]]:
    return [
        {"id": f"x{number:04}", "sent_at": "2026-01-01T00:00:00Z", "subject": "x"}
        for number in range(150)
    ]


def test_nothing_of_it_is_written_to_the_disclosure_log(house: Household) -> None:
    gathered(house, mail_request())
    assert house.disclosures.disclosures(DisclosureQuery(limit=10)) == ()


def values(house: Household, *connections: str, clock: Any = None) -> dict[str, Any]:
    reader = EvidenceReader(house.reads, house.store.declarations, clock or (lambda: 0.0))
    declared = known_stream(house)
    return {
        name: [(each.value, each.count) for each in found]
        for name, found in reader.values(connections, declared).items()
    }


def known_stream(house: Household) -> Any:
    with house.reads.snapshot(None) as snapshot:
        (mail,) = [
            declared
            for declared in house.store.declarations.current(snapshot.declarations()).values()
            if declared.connector_key == "mail"
        ]
    return mail.streams["messages"]


def test_values_to_limit_to_are_the_most_frequent_over_all_accounts(house: Household) -> None:
    found, both = values(house, WORK), values(house, HOME, WORK)
    declared = known_stream(house)
    assert found
    for name, counted in found.items():
        assert name in declared.limiting
        counts = [count for _, count in counted]
        assert counts == sorted(counts, reverse=True)
        assert sum(counts) <= 12 < sum(count for _, count in both[name])
        rows = mails(house.clock.now_ns, 12)
        for value, count in counted:
            assert count == sum(row.get(name) == value for row in rows)


def test_a_field_that_has_another_value_in_each_record_offers_none(house: Household) -> None:
    counted = values(house, WORK)
    declared = known_stream(house)
    unique = [
        name
        for name in declared.limiting
        if len({str(row.get(name)) for row in mails(house.clock.now_ns, 12)}) == 12
    ]
    assert not set(unique) & set(counted)


def test_values_that_do_not_fit_the_time_are_not_offered(house: Household) -> None:
    late = iter([0.0, *[10.0] * 100])
    assert values(house, WORK, clock=lambda: next(late)) == {}


def test_values_are_counted_once_for_each_state_of_the_records(house: Household) -> None:
    looks: list[float] = []

    def clock() -> float:
        looks.append(0.0)
        return 0.0

    reader = EvidenceReader(house.reads, house.store.declarations, clock)
    declared = known_stream(house)
    first = reader.values([WORK], declared)
    counted = len(looks)
    assert reader.values([WORK], declared) is first
    assert len(looks) == counted
    reader.values([HOME], declared)
    assert len(looks) > counted
    house.fill(WORK, "messages", _many(house)[:1])
    assert reader.values([WORK], declared) is not first
    assert len(reader.remembered) == 1


def test_what_nobody_chose_yet_has_its_stored_total(house: Household) -> None:
    reader = EvidenceReader(house.reads, house.store.declarations)
    stored = reader.stored_counts()
    assert (stored[HOME, "messages"], stored[WORK, "messages"]) == (40, 12)
    assert stored[CHECKING, "transactions"] == 30


class NeverInTime:
    """Ports whose states of the store are past their time when they are opened."""

    def __init__(self, ports: ReadPorts, opened: int) -> None:
        self._ports, self._opened = ports, opened

    def snapshot(self, seconds: float | None) -> Any:
        self._opened -= 1
        if self._opened < 0:
            raise QueryTimeout("Too long.")
        return self._ports.snapshot(seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ports, name)


def test_what_cannot_be_looked_at_in_time_is_at_least_none(house: Household) -> None:
    granting = Granting(house.authorization, house.store.catalogs, house.clock, house.random_bytes)
    handle = house.ask(mail_request(instance_ids=[WORK])).removeprefix("/consent/")
    prospective = granting.view(handle, OWNER).prospective()
    slow: Any = NeverInTime(house.reads, 1)
    found = EvidenceReader(slow, house.store.declarations, lambda: 0.0).gather(prospective)
    evidence = found[WORK, "messages"]
    assert (evidence.count, evidence.at_least, evidence.samples) == (0, True, ())


def test_what_can_be_looked_at_in_time_is_counted_as_far_as_that(house: Household) -> None:
    granting = Granting(house.authorization, house.store.catalogs, house.clock, house.random_bytes)
    handle = house.ask(mail_request(instance_ids=[WORK])).removeprefix("/consent/")
    prospective = granting.view(handle, OWNER).prospective()
    late = EvidenceReader(house.reads, house.store.declarations, SlowMonotonic())
    evidence = late.gather(prospective)[WORK, "messages"]
    assert (evidence.count, evidence.at_least, len(evidence.samples)) == (12, False, 3)
    assert (evidence.earliest, evidence.latest) == (None, None)
