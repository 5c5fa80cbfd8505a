import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data, Skipped
from pdpp_sources.common.errors import BadRecord, ExportError
from pdpp_sources.common.export import open_export
from pdpp_sources.registry import readings
from pdpp_sources.tables.reader import TableSource
from pdpp_sources.tables.table_fit import Guidance
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_zip
from sources.tests.specimens.table import TABLE


def declared(path: Path, guidance: Guidance) -> Data:
    with open_export(path) as export:
        (reading,) = readings(export, guidance)
    return reading.source.declaration["streams"][0]


@pytest.fixture
def shopping(tmp_path: Path) -> Path:
    (tmp_path / "shopping.csv").write_bytes(TABLE)
    return tmp_path / "shopping.csv"


def test_columns_get_their_types_and_roles(shopping: Path) -> None:
    stream = declared(shopping, Guidance())
    kinds = {name: schema.get("type") for name, schema in stream["schema"]["properties"].items()}
    assert kinds["price"] == ["number", "null"]
    assert kinds["paid"] == ["boolean", "null"]
    assert stream["consent_time_field"] == "bought"
    assert stream["query"]["aggregations"]["sum"] == ["price"]
    assert "kind" in stream["query"]["aggregations"]["group_by"]
    assert stream["schema"]["properties"]["name"]["x_pdpp_role"] == "primary-title"


def test_a_chat_as_a_table_has_conversations_and_speakers(tmp_path: Path) -> None:
    turns = [f"t{n},chat {n % 2},2026-05-01T10:{n:02}:00Z,{'AB'[n % 2]},said {n}" for n in range(9)]
    file = tmp_path / "turns.csv"
    file.write_text("\n".join(["id,conversation_id,time,speaker,text", *turns]))
    fields = declared(file, Guidance())["schema"]["properties"]
    roles = {name: schema.get("x_pdpp_role") for name, schema in fields.items()}
    assert roles["conversation_id"] == "conversation"
    assert roles["speaker"] == "author"
    assert roles["text"] is None
    named = declared(file, Guidance(title="speaker"))["schema"]["properties"]
    assert named["speaker"]["x_pdpp_role"] == "primary-title"


def test_who_wrote_is_a_role_of_chats_only(tmp_path: Path) -> None:
    file = tmp_path / "books.csv"
    rows = [f"b{n},2026-05-{n + 1:02},{'AB'[n % 2]},title {n}" for n in range(9)]
    file.write_text("\n".join(["id,bought,author,title", *rows]))
    fields = declared(file, Guidance())["schema"]["properties"]
    assert fields["author"].get("x_pdpp_role") is None
    assert fields["title"]["x_pdpp_role"] == "primary-title"


def test_rows_become_records(shopping: Path) -> None:
    items = read_path(shopping)
    first, _, third, last = records_of(items)
    assert first == {
        "id": "1",
        "name": "Flour, white",
        "price": 1.2,
        "bought": "2024-01-05",
        "kind": "food",
        "paid": True,
    }
    assert third["name"] == "two\nlines"
    assert last["price"] is None
    assert skips_of(items) == ["bad_record"]


def test_the_owner_names_the_roles(shopping: Path) -> None:
    stream = declared(shopping, Guidance(key="name", title="kind"))
    assert stream["schema"]["properties"]["kind"]["x_pdpp_role"] == "primary-title"
    assert "column_id" in stream["schema"]["properties"]


def test_a_column_that_is_not_there_is_an_error(shopping: Path) -> None:
    with pytest.raises(BadRecord) as caught:
        declared(shopping, Guidance(time="when"))
    assert caught.value.code == "usage"


def test_json_lines(tmp_path: Path) -> None:
    rows: list[Data] = [
        {"uuid": "a", "at": "2024-01-05T10:00:00+02:00", "n": 1, "deep": {"x": [1]}},
        {"uuid": "b", "at": "2024-01-06T10:00:00Z", "n": 2.5, "extra": "here"},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    items = read_path(path)
    first, second = records_of(items)
    assert (first["id"], first["at"], first["n"]) == ("a", "2024-01-05T08:00:00Z", 1)
    assert first["deep"] == {"x": [1]}
    assert second["extra"] == "here"
    assert skips_of(items) == ["bad_record"]


def test_a_database_gives_a_stream_for_each_table(tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE Books (isbn TEXT PRIMARY KEY, title TEXT, read_on TEXT)")
        database.execute("CREATE TABLE shelf (name TEXT, cover BLOB)")
        database.execute(
            "INSERT INTO Books VALUES ('1', 'Emma', '2024-01-01'), ('2', 'Dune', NULL)"
        )
        database.execute("INSERT INTO shelf VALUES ('top', x'00ff')")
        database.commit()
    before = path.read_bytes()
    items = read_path(path)
    assert [book["id"] for book in records_of(items, "books")] == ["1", "2"]
    assert records_of(items, "shelf")[0]["cover"] == "(2 bytes)"
    assert path.read_bytes() == before


def test_a_database_inside_a_zip_is_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE t (name TEXT)")
        database.execute("INSERT INTO t VALUES ('bread')")
        database.commit()
    files = {"a.db": (tmp_path / "a.db").read_bytes()}
    assert records_of(read_path(as_zip(files, tmp_path / "a.zip")))[0]["name"] == "bread"


def test_instants_that_are_numbers_are_known_by_name_and_value_and_said(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE t (visit_time INT, date_ms INT, created REAL, sent_at INT, amount INT)"
        )
        row = (13255337775902496, 1593250194587, 640400624.25, 726000000123456789, 1593250194)
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [row, (0, None, None, 0, 7)])
        database.commit()
    with open_export(path) as export:
        (reading,) = readings(export)
    first, second = records_of(read_path(path))
    assert {name: first[name] for name in ("visit_time", "date_ms", "created", "sent_at")} == {
        "visit_time": "2021-01-17T06:16:15.902Z",
        "date_ms": "2020-06-27T09:29:54.587Z",
        "created": "2021-04-18T01:03:44.250Z",
        "sent_at": "2024-01-03T18:40:00.123Z",
    }
    assert (first["amount"], second["date_ms"]) == (1593250194, None)
    assert "visit_time" not in second
    assert "visit_time: microseconds since 1601" in reading.why
    assert "created: seconds since 2001" in reading.why


def test_what_a_database_computes_is_named_and_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (name TEXT, long INT AS (length(name)) STORED)")
        database.execute("INSERT INTO t (name) VALUES ('bread')")
        database.execute("CREATE TABLE w (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID")
        database.execute("INSERT INTO w VALUES ('a', 'b')")
        database.execute("CREATE VIEW seen AS SELECT * FROM t")
        database.execute("CREATE VIRTUAL TABLE words USING fts5(body)")
        database.commit()
    items = read_path(path)
    assert records_of(items, "t")[0]["long"] == 5
    assert records_of(items, "w")[0]["v"] == "b"
    named = [i for _, i in items if isinstance(i, Skipped)]
    assert [(i.where, i.code) for i in named] == [
        ("seen", "unknown_record_type"),
        ("words", "unknown_record_type"),
    ]


def test_a_damaged_database_is_an_error_or_a_report(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE t (x)")
        database.executemany("INSERT INTO t VALUES (?)", [("x" * 1000,)] * 100)
        database.commit()
    content = (tmp_path / "a.db").read_bytes()
    (tmp_path / "a.db").write_bytes(content[: len(content) // 2])
    try:
        items = read_path(tmp_path / "a.db")
    except ExportError:
        return
    assert "damaged_file" in skips_of(items)


def test_rows_of_equal_content_without_a_key_are_as_many_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("day;what\n1;coffee\n1;coffee\n2;tea\n")
    first = records_of(read_path(tmp_path / "a.csv"))
    assert [each["what"] for each in first] == ["coffee", "coffee", "tea"]
    assert len({each["id"] for each in first}) == 3
    (tmp_path / "a.csv").write_text("day;what\n2;tea\n1;coffee\n1;coffee\n1;coffee\n")
    more = records_of(read_path(tmp_path / "a.csv"))
    assert len({each["id"] for each in more} - {each["id"] for each in first}) == 1


def test_a_column_that_is_called_as_a_key_and_never_repeats_is_the_key(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Payee,Transaction ID,Account ID\nA,x1,7\nA,x2,7\n")
    assert [each["id"] for each in records_of(read_path(tmp_path / "a.csv"))] == ["x1", "x2"]


def test_a_column_that_repeats_late_is_no_key(tmp_path: Path) -> None:
    rows = [f"{number},{number % 9}" for number in range(1500)]
    (tmp_path / "a.csv").write_text("\n".join(["order_id,amount", *rows, rows[-1]]))
    items = read_path(tmp_path / "a.csv")
    assert (len(records_of(items)), skips_of(items)) == (1501, [])


def test_a_key_that_the_owner_named_and_that_repeats_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "a": 2}\n{"id": 1, "a": 2}\n{"id": 1, "a": 3}\n')
    with open_export(tmp_path / "a.jsonl") as export:
        source = TableSource().fitted(export, Guidance(key="id"))
        items = [("", item) for item in source.read(export)]
    assert (len(records_of(items)), skips_of(items)) == (1, ["duplicate", "duplicate_id"])


def test_a_database_with_an_empty_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE empty (id INTEGER PRIMARY KEY, name TEXT)")
        database.execute("CREATE TABLE full (id INTEGER PRIMARY KEY, name TEXT)")
        database.execute("INSERT INTO full VALUES (1, 'bread')")
        database.commit()
    assert [each["name"] for each in records_of(read_path(path))] == ["bread"]


def test_a_row_of_a_database_that_is_not_utf_8_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (name TEXT)")
        database.execute("INSERT INTO t VALUES ('a'), (CAST(x'66fc6e66' AS TEXT)), ('c')")
        database.commit()
    names = [each["name"] for each in records_of(read_path(path))]
    path.unlink()
    assert names == ["a", "fünf", "c"]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (a, b AS (load_extension('x')))",
        "CREATE TABLE t (a, b AS (hex(zeroblob(400000000))))",
        "CREATE VIEW t AS SELECT 1 AS a",
    ],
)
def test_what_a_stranger_s_schema_computes_is_not_trusted(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        with suppress(sqlite3.Error):
            database.execute(statement)
            database.execute("INSERT INTO t (a) VALUES (1)")
        database.execute("CREATE TABLE u (name TEXT)")
        database.execute("INSERT INTO u VALUES ('good')")
        database.commit()
    items = read_path(path)
    path.unlink()
    assert [each.get("name") for each in records_of(items, "u")] == ["good"]


def test_a_bank_s_table_has_words_before_its_header_and_commas_in_its_amounts(
    tmp_path: Path,
) -> None:
    lines = [
        "Kontonummer:;DE00 1234",
        "",
        "Kontostand vom 31.01.2024:;1.262,24 EUR",
        "",
        '"Buchungstag";"Empfänger";"Betrag (€)";',
        '"30.01.2024";"Bäcker & Co";"-3,10";',
        '"31.01.2024";"Lohn";"2.500,00";',
    ]
    (tmp_path / "umsatz.csv").write_bytes("\n".join(lines).encode("cp1252"))
    items = read_path(tmp_path / "umsatz.csv")
    first, second = records_of(items)
    assert (first["Buchungstag"], first["Empfaenger"]) == ("2024-01-30", "Bäcker & Co")
    assert (first["Betrag_EUR"], second["Betrag_EUR"]) == (-3.1, 2500)
    assert skips_of(items) == ["before_header"]


def test_columns_beyond_the_limit_are_named_and_cost_no_other_table(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TABLE wide ({', '.join(f'c{n}' for n in range(1900))})")
        database.execute("INSERT INTO wide (c0, c1) VALUES (1, 2)")
        database.execute("CREATE TABLE u (name TEXT)")
        database.execute("INSERT INTO u VALUES ('good')")
        database.commit()
    items = read_path(path)
    assert records_of(items, "u")[0]["name"] == "good"
    assert records_of(items, "wide")[0]["c1"] == 2
    assert skips_of(items) == ["too_large"]
