"""A file that an account got before: what an earlier version, or another key, made of it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import orjson
import pytest

from pdpp_kernel.declaration import Stream
from pdpp_kernel.source_item import stable_id
from pdpp_sources.reader_process import ReaderProcess
from personal_server.collecting.connections import create_connection
from personal_server.collecting.declarations import declare
from personal_server.collecting.ingest import ingest
from personal_server.collecting.receipts import ImportMemory, receipts_of
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.stored import Batch
from server.tests.cli.import_command.test_reported_tables import stored
from server.tests.cli.import_machine import Machine
from server.tests.cli.test_second_look import MORE, RECIPE, RIDES, reader
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.reports import REPORTS

__all__ = ["reader"]  # a fixture
CHAT = (
    '{"participants": [{"name": "Bo"}], "messages": [{"sender_name": "Bo", "timestamp_ms": '
    '1700000000000, "content": "\\u00c3\\u00a9"}], "title": "Bo"}'
)


def imported(machine: Machine, path: Path, *options: str | Path) -> dict[str, Any]:
    code, printed = machine.run("import", path, *options)
    assert code == 0, printed
    return printed["imports"][0]


def by_recipe(machine: Machine, folder: Path, recipe: str, rows: str = RIDES) -> dict[str, Any]:
    (folder / "rides.toml").write_text(recipe)
    (folder / "rides.csv").write_text(rows)
    return imported(machine, folder / "rides.csv", "--recipe", folder / "rides.toml")


def kept(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    tables = report.get("kept_tables", [])
    return [(each["code"], each["name"], each["command"]) for each in tables]


OTHER_KEY = RECIPE.replace('key = ["number"]', 'key = ["began"]')


def test_another_key_of_a_recipe_replaces_what_the_same_file_brought(tmp_path: Path) -> None:
    machine = Machine()
    by_recipe(machine, tmp_path, RECIPE)
    assert "replaced" not in by_recipe(machine, tmp_path, RECIPE)
    changed = by_recipe(machine, tmp_path, OTHER_KEY)
    assert changed["replaced"] == {"rides": 2}
    assert sorted(row["number"] for row in stored(machine)) == ["7", "8"]
    again = by_recipe(machine, tmp_path, OTHER_KEY)
    assert again["streams"]["rides"]["unchanged"] == 2
    assert "replaced" not in again


def test_nothing_is_deleted_where_the_account_got_other_files_too(tmp_path: Path) -> None:
    machine = Machine()
    by_recipe(machine, tmp_path, RECIPE)
    by_recipe(machine, tmp_path, RECIPE, MORE)
    changed = by_recipe(machine, tmp_path, OTHER_KEY)
    assert changed["stored_again"] == ["rides"]
    assert len(stored(machine)) == 5


def test_nothing_is_there_twice_where_what_the_file_lacks_was_deleted(tmp_path: Path) -> None:
    machine, path = Machine(), tmp_path / "rides.csv"
    for rows in (RIDES, RIDES + MORE.partition("\n")[2]):
        path.write_text(rows)
        imported(machine, path, "--key", "no")
    whole = imported(machine, path, "--key", "began", "--replace", "--yes")
    assert whole["streams"]["rides"]["deleted"] == 3
    assert "stored_again" not in whole
    assert len(stored(machine)) == 3


def test_nothing_is_deleted_where_the_account_got_more_than_its_receipts_say(
    tmp_path: Path,
) -> None:
    machine = Machine()
    by_recipe(machine, tmp_path, RECIPE)
    with machine.store.snapshot() as snapshot:
        (held,) = snapshot.stored_streams()
    row = {"id": "own", "number": "9", "began": "2026-07-03T08:00:00Z", "km": 1}
    _hold(machine, held.connection_id, _declared_rides(machine), row)
    assert by_recipe(machine, tmp_path, OTHER_KEY)["stored_again"] == ["rides"]
    assert len(stored(machine)) == 5


def test_nothing_is_deleted_where_a_stream_of_the_recipe_names_no_file(tmp_path: Path) -> None:
    machine = Machine()
    recipe, path = tmp_path / "rides.toml", tmp_path / "export.zip"
    stream = RECIPE[RECIPE.index("[[stream]]") :]
    walks = stream.replace('"rides"', '"walks"')
    both = RECIPE.replace('name = "rides"', 'name = "rides"\nfiles = ["rides.csv"]')
    both += walks.replace('name = "walks"', 'name = "walks"\nfiles = ["walks.csv"]')
    with ZipFile(path, "w") as archive:
        archive.writestr("rides.csv", RIDES)
        archive.writestr("walks.csv", MORE)
    for text in (both, both.replace("walks.csv", "wlaks.csv")):
        recipe.write_text(text)
        report = imported(machine, path, "--recipe", recipe)
    assert "no_file" in {each["code"] for each in report["noted"]}
    assert "replaced" not in report
    assert len(stored(machine, "walks")) == 1


def test_nothing_is_deleted_of_a_folder_whose_next_file_has_the_same_size(tmp_path: Path) -> None:
    machine = Machine()
    (tmp_path / "recipe").mkdir()
    (tmp_path / "rides").mkdir()
    recipe, path = tmp_path / "recipe" / "rides.toml", tmp_path / "rides" / "rides.csv"
    recipe.write_text(RECIPE)
    for rows in (RIDES, RIDES.replace("\n7,", "\n5,").replace("\n8,", "\n6,")):
        path.write_text(rows)
        report = imported(machine, path.parent, "--recipe", recipe)
        assert "replaced" not in report
    assert sorted(row["number"] for row in stored(machine)) == ["5", "6", "7", "8"]


@pytest.mark.parametrize("kept", [{"~rides": {"places": {"other": 9}}}, {"rides": {"at": 1}}])
def test_nothing_is_deleted_where_others_may_have_written(
    kept: dict[str, Any], tmp_path: Path
) -> None:
    """As an import of another file does that was cut, or a collector."""
    machine = Machine()
    first = by_recipe(machine, tmp_path, RECIPE)
    account = first["connection"]["connection_id"]
    for name, value in kept.items():
        held = machine.store.state(account).state.get(name, {})
        machine.store.put_state(account, {name: held | value}, 9)
    assert by_recipe(machine, tmp_path, OTHER_KEY)["stored_again"] == ["rides"]
    assert len(stored(machine)) == 4


def test_what_is_written_while_the_file_is_read_again_stays(tmp_path: Path) -> None:
    machine = Machine()
    account = by_recipe(machine, tmp_path, RECIPE)["connection"]["connection_id"]
    commit, stream = machine.store.commit, _declared_rides(machine)

    def amid_others(batch: Batch) -> Any:
        machine.store.commit = commit
        row = {"id": "own", "number": "9", "began": "2026-07-03T08:00:00Z", "km": 1}
        _hold(machine, account, stream, row)
        return commit(batch)

    machine.store.commit = amid_others
    assert by_recipe(machine, tmp_path, OTHER_KEY)["replaced"] == {"rides": 2}
    assert sorted(row["number"] for row in stored(machine)) == ["7", "8", "9"]


def test_an_import_of_the_same_file_at_once_is_none_of_before(tmp_path: Path) -> None:
    """Nobody is told to erase what two imports brought together."""
    machine = Machine()
    account = by_recipe(machine, tmp_path, RECIPE)["connection"]["connection_id"]
    (receipt,) = receipts_of(machine.store, account)
    commit = machine.store.commit

    def amid_another(batch: Batch) -> Any:
        ImportMemory(machine.store, account, "rides").finish("other", other, 9)
        return commit(batch)

    digest = hashlib.sha256(MORE.encode()).hexdigest()
    other = receipt | {"sha256": digest}
    machine.store.commit = amid_another
    assert "stored_again" not in by_recipe(machine, tmp_path, RECIPE, MORE)


def test_nothing_is_deleted_where_another_record_took_the_place_of_one_that_went(
    tmp_path: Path,
) -> None:
    machine = Machine()
    account = by_recipe(machine, tmp_path, RECIPE)["connection"]["connection_id"]
    for row in list(stored(machine)):
        machine.store.delete_record(account, "rides", row["id"], 9)
    hold_own(machine)
    assert "replaced" not in by_recipe(machine, tmp_path, OTHER_KEY)
    assert sorted(row["number"] for row in stored(machine)) == ["7", "8", "9"]


def test_nothing_is_deleted_where_a_row_cannot_be_read(tmp_path: Path) -> None:
    machine = Machine()
    rows = RIDES + "9,,5,Ulm,beyond,the,header\n"
    by_recipe(machine, tmp_path, RECIPE, rows)
    assert by_recipe(machine, tmp_path, OTHER_KEY, rows)["stored_again"] == ["rides"]


def test_a_chat_that_was_one_row_of_a_table_is_replaced_by_its_messages(tmp_path: Path) -> None:
    path = tmp_path / "message_1.json"
    path.write_text(CHAT)
    machine = with_one_row(path)

    again = imported(machine, path)

    assert (again["connector_key"], again["replaced_tables"]) == ("meta", ["message_1"])
    with machine.store.snapshot() as snapshot:
        keys = sorted(each.connector_key for each in snapshot.connections())
        counts = {each.stream: each.record_count for each in snapshot.stored_streams()}
    assert keys == ["meta", "table-message-1"]  # what apps may read of the table is not ended
    assert not counts.get("message_1")
    assert [row["text"] for row in stored(machine, "messages")] == ["é"]
    third = imported(machine, path)
    assert not {each["new"] for each in third["streams"].values()} - {0}
    assert "replaced_tables" not in third


def test_a_chat_that_is_one_row_as_a_table_today_too_becomes_its_messages(tmp_path: Path) -> None:
    path = tmp_path / "conversation.json"
    path.write_bytes(REPORTS["gpt-single"][path.name])
    machine = Machine()
    imported(machine, path, "--as", "table")
    again = imported(machine, path)
    assert (again["connector_key"], again["replaced_tables"]) == ("chatgpt", ["conversation"])
    with machine.store.snapshot() as snapshot:
        counts = {each.stream: each.record_count for each in snapshot.stored_streams()}
    assert (counts["messages"], counts["conversation"]) == (2, 0)
    third = imported(machine, path)
    assert (third["connector_key"], third["streams"]["messages"]["unchanged"]) == ("chatgpt", 2)


def test_a_table_stays_where_its_source_cannot_read_a_message(tmp_path: Path) -> None:
    path = tmp_path / "message_1.json"
    path.write_text(CHAT.replace('"messages": [', '"messages": [{"sender_name": "Bo"}, '))
    machine = with_one_row(path)
    again = imported(machine, path)
    assert again["skipped"]
    assert "replaced_tables" not in again
    assert kept(again) == [("entries_left", "message_1", "pdpp connection erase message_1")]
    assert len(stored(machine, "message_1")) == 1
    assert kept(imported(machine, path)) == kept(again)
    machine.store.erase_connection(again["kept_tables"][0]["connection_id"], 9)
    assert not kept(imported(machine, path))


def test_a_table_of_one_file_is_replaced_without_the_pictures_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "Starter.json"
    path.write_bytes(SPECIMENS["google"]["Takeout/Keep/Starter.json"])
    machine = with_one_row(path)
    again = imported(machine, path)
    assert [each["code"] for each in again["skipped"]] == ["missing_attachment"]
    assert (again["replaced_tables"], kept(again)) == (["Starter"], [])


def test_a_table_stays_where_its_source_leaves_a_file_of_it(
    tmp_path: Path, reader: ReaderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    recipes, path = tmp_path / "recipes", tmp_path / "export.zip"
    recipes.mkdir()
    named = RECIPE.replace('name = "rides"', 'name = "rides"\nfiles = ["rides.csv"]')
    (recipes / "rides.toml").write_text(named)
    with ZipFile(path, "w") as archive:
        archive.writestr("rides.csv", RIDES)
        archive.writestr("costs.csv", "day,cost\n2026-07-01,5\n2026-07-02,6\n")
    imported(machine, path, "--as", "table")
    monkeypatch.setattr(reader, "_recipes", recipes)
    again = imported(machine, path, "--as", "rides")
    assert again["streams"]["rides"]["new"] == 2
    assert "replaced_tables" not in again
    assert [code for code, *_ in kept(again)] == ["file_left"]
    assert len(stored(machine, "costs")) == 2
    table = next(each["connection_id"] for each in again["kept_tables"])
    machine.store.delete_stream(table, "rides", machine.ports.clock())
    assert not kept(imported(machine, path, "--as", "rides"))  # what is left is there once


def test_a_table_stays_where_its_source_read_another_file_of_it_in_part(tmp_path: Path) -> None:
    path, other = tmp_path / "message_1.json", tmp_path / "message_2.json"
    path.write_text(CHAT)
    other.write_text(CHAT.replace('"messages": [', '"messages": [{"sender_name": "Bo"}, '))
    machine = with_one_row(path, hashlib.sha256(other.read_bytes()).hexdigest())
    with machine.store.snapshot() as snapshot:
        ((held,), (declared,)) = snapshot.stored_streams(), snapshot.declarations()
    stream = parse_declaration(orjson.loads(declared.raw)).streams["message_1"]
    _hold(machine, held.connection_id, stream, {"id": "other", "title": "Bo"})
    for each in (other, path):
        assert "replaced_tables" not in imported(machine, each)
    assert len(stored(machine, "message_1")) == 2


def test_a_table_that_got_another_file_too_is_left(tmp_path: Path) -> None:
    path = tmp_path / "message_1.json"
    path.write_text(CHAT)
    machine = with_one_row(path, "0" * 64)
    again = imported(machine, path)
    assert "replaced_tables" not in again
    assert [code for code, *_ in kept(again)] == ["other_records"]
    assert len(stored(machine, "message_1")) == 1


@pytest.mark.parametrize(("beside", "kept"), [('"title": "Bo"', True), ('"none": []', False)])
def test_an_object_that_was_one_row_stays_one_where_its_lists_are_not_all(
    beside: str, kept: bool, tmp_path: Path
) -> None:
    path = tmp_path / "crew.json"
    path.write_text('{"people": [{"who": "Bo"}, {"who": "Cy"}], ' + beside + "}")
    machine = with_one_row(path)
    again = imported(machine, path)
    names = sorted(row.get("who", "crew") for row in stored(machine))
    assert names == (["crew"] if kept else ["Bo", "Cy"])
    assert ("replaced" in again) is not kept


def _declared_rides(machine: Machine) -> Stream:
    with machine.store.snapshot() as snapshot:
        (declared,) = snapshot.declarations()
    return parse_declaration(orjson.loads(declared.raw)).streams["rides"]


def with_one_row(path: Path, *more: str) -> Machine:
    """A store whose table has the object of a file as one row, as on 22 November 2026.

    Shapes: `more` are the digests of other files that it got.
    """
    machine, scratch, stream = Machine(), Machine(), path.stem
    imported(scratch, path, "--as", "table")
    with scratch.store.snapshot() as snapshot:
        (declared,) = snapshot.declarations()
    old, values = orjson.loads(declared.raw), orjson.loads(path.read_bytes())
    form = old["streams"][0] | {"name": stream}
    form.pop("query")
    form["schema"]["properties"] = {"id": {"type": "string"}} | {
        name: {"description": f"Column {name}"} for name in values
    }
    old["streams"], old["declaration_version"] = [form], "old"
    declaration = declare(machine.store, old, 1).declaration
    known = machine.store.declaration(declaration.connector_key, None)
    random_bytes = machine.ports.random_bytes
    account = create_connection(machine.store, known, stream, 1, random_bytes).connection_id
    content = repr(sorted((name, str(value)) for name, value in values.items()))
    _hold(
        machine, account, declaration.streams[stream], {"id": stable_id("row", content), **values}
    )
    for digest in (hashlib.sha256(path.read_bytes()).hexdigest(), *more):
        receipt = {
            "name": path.name,
            "sha256": digest,
            "imported_at": "2026-11-22T00:00:00Z",
            "streams": {stream: {"new": 1, "updated": 0}},
        }
        ImportMemory(machine.store, account, stream).finish("file", receipt, 3)
    return machine


def hold_own(machine: Machine) -> None:
    """Have another program write a ride."""
    with machine.store.snapshot() as snapshot:
        (account,) = {each.connection_id for each in snapshot.connections()}
    row = {"id": "own", "number": "9", "began": "2026-07-03T08:00:00Z", "km": 1}
    _hold(machine, account, _declared_rides(machine), row)


def _hold(machine: Machine, connection_id: str, stream: Stream, row: dict[str, Any]) -> None:
    line = {"data": row, "emitted_at": "2026-11-22T00:00:00Z"}
    ingest(machine.store, connection_id, stream, [line], now_ns=2, new_receipt_id=lambda: "r")
