"""What a search on PostgreSQL reads: nothing that stands outside what is visible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.storage.postgres import search as asked
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.ports.asking import count_terms, search
from server.tests.storage.worlds import furnish, note, scope, write
from tests.postgresql import schema, server


class Posted:
    """A store, and what is posted of its only source."""

    def __init__(self, store: SqlRecordStore, name: str) -> None:
        self.store = store
        self.name = name

    def lines(self, statement: str) -> list[Any]:
        with psycopg.connect(server().url(), autocommit=True) as connection:
            connection.execute(f"SET search_path TO {self.name}".encode())
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def of(self, term: str) -> set[int]:
        return {
            number
            for (ids,) in self.lines(f"SELECT ids FROM p1 WHERE term = '{term}'")  # noqa: S608
            for number in ids
        }


@pytest.fixture
def posted(tmp_path: Path) -> Iterator[Posted]:
    with (
        schema() as name,
        closing(PostgresDatabase(server().url(), tmp_path, name)) as database,
    ):
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        yield Posted(store, name)


@pytest.mark.parametrize("terms", [("rain",), ("rain*",), ("rain", "here")])
def test_blocks_outside_a_time_constraint_are_not_read(
    posted: Posted, terms: tuple[str, ...]
) -> None:
    for key, year, title in (("old", 2025, "rain"), ("sun", 2026, "sun"), ("new", 2027, "rain")):
        told = note(key, at=f"{year}-05-01T00:00:00Z", title=title, body="here")
        write(posted.store, "cin_a", [told])
    # whoever reads what is posted of the past finds another record there
    posted.lines(
        "UPDATE p1 SET ids = (SELECT ids FROM p1 WHERE term = '0:sun')"
        " WHERE term = '0:rain' AND last < (SELECT first FROM p1 WHERE term = '0:sun')"
    )
    since = instant_ns("2026-01-01T00:00:00Z")
    late = scope("cin_a", window=TimeConstraint("at", since, None))
    for seen, expected in ((late, {"new"}), (scope("cin_a"), {"sun", "new"})):
        found = search(posted.store, *terms, scopes=(seen,))
        assert {each.key for each in found.candidates} == expected
        counted = count_terms(posted.store, *terms, scopes=(seen,), limit=9)
        assert counted is not None
        assert counted[0] == len(expected)


def test_words_of_removed_records_are_posted_no_more(posted: Posted) -> None:
    write(posted.store, "cin_a", [note(f"n{n}", title=f"rain {n}") for n in range(5)])
    assert len(posted.of("0:rain")) == 5
    write(posted.store, "cin_a", ["n1", note("n2", title="sun")])
    assert len(posted.of("0:rain")) == 3
    assert len(posted.of("0:sun")) == 1
    assert not posted.of("0:1")
    posted.store.delete_record("cin_a", "notes", "n2", 9)
    assert posted.lines("SELECT 1 FROM p1 WHERE term IN ('0:1', '0:sun')") == []
    assert {each.key for each in search(posted.store, "rain").candidates} == {"n0", "n3", "n4"}


@pytest.mark.parametrize(
    ("terms", "hits"),
    [
        (("rain",), {"n1": (4,), "n2": (1,), "n3": (1,)}),
        (("rain", "sun"), {"n1": (4, 2), "n3": (1, 1)}),
        (("sun", "rain"), {"n1": (2, 4), "n3": (1, 1)}),
        (("rain", "-sun"), {"n2": (1,)}),
        (("rain", "sun", "-fog"), {"n1": (4, 2)}),
        (("rain", "hail"), {}),
    ],
)
def test_hits_are_told_by_what_is_posted(
    posted: Posted, terms: tuple[str, ...], hits: dict[str, tuple[int, ...]]
) -> None:
    told = note("n1", title="rain", body="rain, then RAIN; rains, sun and sun")
    others = (note("n2", body="rain"), note("n3", body="sun, rain, fog"))
    write(posted.store, "cin_a", [told, *others])
    posted.lines("UPDATE w1 SET words = ''")
    found = {each.key: each.occurrences for each in search(posted.store, *terms).candidates}
    assert found == hits


@pytest.mark.parametrize("words_of_one", [0, 1 << 30], ids=["words", "posted"])
@pytest.mark.parametrize("first_back", [(1, 1), (1 << 40, 1), (10, 100)])
def test_the_newest_are_found_however_far_back_is_read(
    posted: Posted,
    monkeypatch: pytest.MonkeyPatch,
    words_of_one: int,
    first_back: tuple[int, int],
) -> None:
    monkeypatch.setattr(asked, "WORDS_OF_ONE", words_of_one)
    monkeypatch.setattr(asked, "READ_BACK", (first_back, *asked.READ_BACK))
    random, years = Random(7), range(1998, 2028)
    texts = {
        f"n{year}_{n}": " ".join(random.choices(("rain", "sun", "fog"), k=3))
        for year in years
        for n in range(3)
    }
    for written in random.sample(years, len(years)):
        of_year = (f"n{written}_{n}" for n in range(3))
        notes = [note(key, at=f"{key[1:5]}-0{int(key[6]) + 1}-01T00:00:00Z") for key in of_year]
        write(posted.store, "cin_a", [{**each, "body": texts[each["id"]]} for each in notes])
    newest = sorted(texts, reverse=True)
    for terms, excluded in ((("rain",), ()), (("fog", "rain"), ()), (("sun",), ("fog",))):
        matching = [
            key
            for key in newest
            if all(term in texts[key] for term in terms)
            and not any(term in texts[key] for term in excluded)
        ]
        for window in (1, 4, 100):
            sought = (*terms, *(f"-{term}" for term in excluded))
            found = search(posted.store, *sought, scopes=(scope("cin_a"),), window=window)
            assert {each.key: each.occurrences for each in found.candidates} == {
                key: tuple(texts[key].count(term) for term in terms) for key in matching[:window]
            }
            assert bool(found.truncated) == (len(matching) > window)


def test_tables_that_post_nothing_again_are_brought_up(posted: Posted, tmp_path: Path) -> None:
    write(posted.store, "cin_a", [note("n1", body="rain rain")])
    posted.lines("ALTER TABLE p1 DROP COLUMN again")
    posted.lines(
        "CREATE OR REPLACE FUNCTION pdpp_unpost() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RETURN NULL; END $$"
    )
    with closing(PostgresDatabase(server().url(), tmp_path, posted.name)):
        write(posted.store, "cin_a", [note("n2", body="rain rain rain"), "n1"])
    hits = {each.key: each.occurrences for each in search(posted.store, "rain").candidates}
    assert hits == {"n2": (3,)}
    assert len(posted.of("1:rain")) == 1
