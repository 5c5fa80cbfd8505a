from __future__ import annotations

from pathlib import Path

from personal_server.storage.authorization import ROW_TYPES, RequestRow
from personal_server.storage.sql.authorization import FIRST_TABLES, SCHEMA, SqlAuthorizationStore
from personal_server.storage.sql.fixed_tables import SchemaModule
from personal_server.storage.sqlite.database import SqliteDatabase


def test_a_store_from_before_shown_artifacts_opens_and_its_pages_are_shown_anew(
    tmp_path: Path,
) -> None:
    before = SqliteDatabase(tmp_path / "pdpp.db", [SchemaModule("authorization", (FIRST_TABLES,))])
    with before.write() as session:
        session.run(
            "INSERT INTO auth_requests (subject_id, request_id, flow, client_id, origin, resource,"
            " scope, picker, status, revision, facts, created_at_ns, expires_at_ns,"
            " interval_seconds, wrong_tries, auth_method) VALUES ('own_1', 'ar_1', 'code', 'cli_1',"
            " 'o', 'r', 's', 0, 'pending', 'rv1:x', 'rv1:y', 1, 2, 5, 0, 'none')"
        )
    before.close()
    database = SqliteDatabase(tmp_path / "pdpp.db", [SCHEMA])
    with SqlAuthorizationStore(database, "own_1").read() as reader:
        row = reader.get(RequestRow, RequestRow.request_id.equals("ar_1"))
    database.close()
    assert row is not None
    assert (row.status, row.revision, row.shown, row.facts) == ("pending", None, None, None)


def test_every_row_type_finds_its_columns(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "pdpp.db", [SCHEMA])
    with SqlAuthorizationStore(database, "own_1").read() as reader:
        assert [reader.rows(table) for table in ROW_TYPES] == [[] for _ in ROW_TYPES]
    database.close()
