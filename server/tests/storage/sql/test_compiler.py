"""Equality is looked up, whatever else is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from personal_server.enforcement.plans import RecordsPlan
from server.tests.storage.sqlite.work import Work, counted_store, work_of
from server.tests.storage.worlds import condition, note, order, scope, write


@pytest.mark.parametrize("field", ["mood", "body"])
@pytest.mark.parametrize("operator", ["eq", "in"])
def test_what_ignores_case_costs_the_same_in_a_larger_archive(
    tmp_path: Path, field: str, operator: str
) -> None:
    met = (condition(field, operator, "CALM", caseless=True),)
    plan = RecordsPlan((scope(),), order("at"), conditions=met)
    works: list[Work] = []
    for others in (5, 500):
        with counted_store(tmp_path / str(others)) as (store, counters):
            asked = [note(f"a{n}", **{field: "Calm"}) for n in range(4)]
            rest = [note(f"b{n}", **{field: f"Other {n}"}) for n in range(others)]
            write(store, "cin_a", [*asked, *rest])
            work, found = work_of(store, counters, lambda snapshot: snapshot.count(plan))
            assert found == 4
            works.append(work)
    assert works[0].steps == works[1].steps


def test_a_whole_text_is_looked_for_by_its_words(tmp_path: Path) -> None:
    met = (condition("body", "eq", "Calm sea"),)
    plan = RecordsPlan((scope(),), order("at"), conditions=met)
    works: list[Work] = []
    for others in (5, 500):
        with counted_store(tmp_path / str(others)) as (store, counters):
            rest = [note(f"b{n}", body=f"Other {n}") for n in range(others)]
            write(store, "cin_a", [note("a", body="Calm sea"), *rest])
            work, found = work_of(store, counters, lambda snapshot: snapshot.count(plan))
            assert found == 1
            works.append(work)
    assert works[0].steps == works[1].steps
