"""Where keys alone are visible, how lines are read does not follow from what else is asked."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg

from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.store import SqlRecordStore
from tests.postgresql import schema, server
from tests.storage.worlds import condition, furnish, note, scope, write


def test_a_value_of_hidden_records_changes_no_plan(tmp_path: Path) -> None:
    """The planner knows which values are frequent, in hidden records too."""
    shown = scope(resources=frozenset(f"n{number}" for number in range(30)))
    with (
        schema() as name,
        closing(PostgresDatabase(server().url(), tmp_path, name)) as database,
    ):
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        moods = ["calm" if number % 50 else "wild" for number in range(2_000)]
        write(store, "cin_a", [note(f"n{n}", mood=mood) for n, mood in enumerate(moods)])
        with psycopg.connect(server().url(), autocommit=True) as connection:
            connection.execute(f"ANALYZE {name}.r1".encode())
        plans = set[str]()
        with store.snapshot() as snapshot:
            [place] = snapshot.places((shown,))
            for mood in ("calm", "wild", "absent"):
                where = place.matching((condition("mood", "eq", mood),))
                asked = place.compiler.select("1", where)
                lines = snapshot.session.rows(f"EXPLAIN (COSTS OFF) {asked.sql}", asked.params)
                plans.add("\n".join(line[0] for line in lines).replace(mood, "MOOD"))
        assert len(plans) == 1
        assert "r1_k" in plans.pop()
