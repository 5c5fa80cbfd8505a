from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Skipped, SourceRecord
from pdpp_kernel.system.landlock import version
from pdpp_sources import started_process
from pdpp_sources.common.errors import ExportError, ExportNotRecognized, ExportTooCostly
from pdpp_sources.common.export import open_export
from pdpp_sources.outside_readers import outside_readers
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess, Wanted
from pdpp_sources.recipes.recipe_shelf import shipped_recipes
from pdpp_sources.registry import SOURCES, readings, with_outside
from pdpp_sources.started_process import Starter
from sources.tests.outside_package import CONFINED, CURIOUS, TEMPLATE, VIEWINGS, install

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux refuses the network")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that Python searches; what a test loads from it is forgotten."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)  # pyright: ignore[reportUnknownMemberType]
    starter = Starter()  # which finds what it starts where this process does now
    monkeypatch.setattr(started_process, "STARTS", starter)
    known = set(sys.modules)
    yield folder
    starter.leave()
    for name in set(sys.modules) - known:
        if (folder / f"{name}.py").exists():
            del sys.modules[name]


@pytest.fixture
def viewings(tmp_path: Path) -> Path:
    path = tmp_path / "ViewingActivity.csv"
    path.write_bytes(VIEWINGS)
    return path


def test_without_other_packages_the_sources_are_the_built_in_ones() -> None:
    assert outside_readers(SOURCES) == ((), [])
    assert with_outside(()) == SOURCES


@linux_only
def test_a_file_is_read_in_the_confined_process_by_a_reader_of_another_package(
    packages: Path, viewings: Path
) -> None:
    install(packages, CONFINED)
    with ReaderProcess(CostlyPlaces()) as process:
        (reading,) = process.look(viewings, Wanted()).readings
        assert reading.connector_key == "viewings"
        items = list(reading.items())
        by_name = process.look(viewings, Wanted("viewings")).readings[0]
        assert list(by_name.items()) == items
        assert process.faults == []
    titles = [item.data["title"] for item in items if isinstance(item, SourceRecord)]
    assert titles == ["Dark: Season 1: Secrets", "Heat"]
    assert "viewings_reader" not in sys.modules


@pytest.mark.skipif(not version(), reason="this kernel has no Landlock")
def test_the_process_reads_one_export_and_then_another_by_a_new_process(
    packages: Path, viewings: Path, tmp_path: Path
) -> None:
    beside = tmp_path / "beside.txt"
    beside.write_text("x")
    install(packages, CURIOUS.replace("BESIDE", repr(str(beside))))
    other = tmp_path / "other" / "ViewingActivity.csv"
    other.parent.mkdir()
    other.write_bytes(VIEWINGS)
    with ReaderProcess(CostlyPlaces()) as process:
        for path in (viewings, viewings, other, other.parent):
            (reading,) = process.look(path, Wanted()).readings
            assert reading.connector_key == "viewings"
            assert len(list(reading.items())) == 2
        assert process.faults == []


@linux_only
def test_the_process_lists_it_with_its_package(packages: Path) -> None:
    install(packages, CONFINED)
    with ReaderProcess(CostlyPlaces()) as process:
        known = process.sources()
    assert known.unusable == []
    (outside,) = [each for each in known.sources if each.package]
    assert (outside.connector_key, outside.package) == ("viewings", "viewings_reader 1.0")
    assert {each.connector_key for each in known.sources if not each.package} == {
        each.connector_key for each in (*SOURCES, *shipped_recipes())
    }


def test_it_is_asked_before_the_readers_of_any_text_and_any_table(packages: Path) -> None:
    install(packages, TEMPLATE)
    readers, unusable = outside_readers(SOURCES)
    assert unusable == []
    keys = [each.connector_key for each in with_outside(readers)]
    assert keys.index("mail") < keys.index("viewings") < keys.index("notes") < keys.index("table")


WRONG = {
    "does not load": "import a_module_that_is_not_there",
    "ends the program": "raise SystemExit",
    "is called otherwise": f"{TEMPLATE}\nViewingsSource.connector_key = 'other'",
    "takes the key of another": TEMPLATE.replace('"viewings"', '"mail"'),
    "takes the key of a table": TEMPLATE.replace('"viewings"', '"table-viewings"'),
    "takes the source of another": TEMPLATE.replace(
        "[VIEWINGS])",
        "[VIEWINGS]) | {'source': {'kind': 'connector',"
        " 'id': 'https://registry.pdpp.dev/connectors/mail'}}",
    ),
    "declares nothing": f"{TEMPLATE}\nViewingsSource.declaration = {{}}",
    "declares what is no value": f"{TEMPLATE}\nViewingsSource.declaration['x'] = object()",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_reader_that_cannot_be_used_is_named_and_costs_no_other(
    packages: Path, text: str
) -> None:
    install(packages, TEMPLATE, "good")
    install(packages, text.replace("viewings", "viewed"), "wrong")
    readers, unusable = outside_readers(SOURCES)
    assert [each.package for each in readers] == ["good 1.0"]
    assert [(each.name, each.package) for each in unusable] == [("wrong", "wrong 1.0")]
    assert unusable[0].fault


def test_of_two_readers_of_one_key_the_first_by_name_of_its_package_is_kept(
    packages: Path,
) -> None:
    install(packages, TEMPLATE, "a_reader")
    install(packages, TEMPLATE, "b_reader")
    readers, unusable = outside_readers(SOURCES)
    assert [each.package for each in readers] == ["a_reader 1.0"]
    assert [each.package for each in unusable] == ["b_reader 1.0"]


FAILING = TEMPLATE.replace("mine = matching(", "raise KeyError('a secret')\n        mine = (")


def test_an_error_while_it_looks_counts_as_not_its_own(packages: Path, viewings: Path) -> None:
    install(packages, FAILING)
    with ReaderProcess(CostlyPlaces()) as process:
        (reading,) = process.look(viewings, Wanted()).readings
        assert reading.connector_key.startswith("table")
        (fault,) = process.package_faults
        assert fault.startswith("viewings_reader 1.0: KeyError in viewings_reader.py, line ")
        process.look(viewings, Wanted("table"))
        assert process.package_faults == [fault]


def test_what_fails_is_told_also_where_nobody_reads_the_file(
    packages: Path, tmp_path: Path
) -> None:
    install(packages, "import a_module_that_is_not_there")
    path = tmp_path / "bytes.bin"
    path.write_bytes(bytes(range(256)))
    with ReaderProcess(CostlyPlaces()) as process:
        with pytest.raises(ExportNotRecognized):
            process.look(path, Wanted())
        assert process.package_faults[0].startswith("viewings_reader 1.0: ModuleNotFoundError in ")


def test_one_that_ends_the_process_costs_no_source_that_is_named(
    packages: Path, viewings: Path
) -> None:
    install(packages, "import os\nos._exit(9)")
    with ReaderProcess(CostlyPlaces()) as process:
        with pytest.raises(ExportTooCostly):
            process.sources()
        with pytest.raises(ExportTooCostly):
            process.look(viewings, Wanted())
        assert process.look(viewings, Wanted("table")).readings


def test_in_this_process_it_reads_the_same(packages: Path, viewings: Path) -> None:
    install(packages, TEMPLATE)
    readers, _ = outside_readers(SOURCES)
    with open_export(viewings) as export:
        (reading,) = readings(export, sources=with_outside(readers))
        assert len(list(reading.items())) == 2


FAILING_AT_HEAT = TEMPLATE.replace(
    "    title = one_line(cells[0])\n",
    "    title = one_line(cells[0])\n    if title == 'Heat': raise ValueError('a secret')\n",
)


def test_an_error_while_it_reads_is_its_own_and_costs_no_other_entry(
    packages: Path, viewings: Path, tmp_path: Path
) -> None:
    assert FAILING_AT_HEAT != TEMPLATE
    install(packages, FAILING_AT_HEAT)
    costly = CostlyPlaces(tmp_path / "places.json")
    with ReaderProcess(costly) as process:
        (reading,) = process.look(viewings, Wanted()).readings
        first, second = reading.items()
        assert isinstance(first, SourceRecord)
        assert isinstance(second, Skipped)
        assert second.code == "reader_failed"
        assert "viewings_reader 1.0" in second.reason
        assert process.faults == []
        (fault,) = process.package_faults
        assert fault.startswith("viewings_reader 1.0: ValueError in viewings_reader.py, line ")
    assert costly.known() == ()  # one that was mended is tried again


def test_one_that_fails_before_its_first_file_is_refused_with_its_package(
    packages: Path, viewings: Path
) -> None:
    failing = TEMPLATE.replace("return beginning_at(", "raise KeyError('a secret')\n        (")
    install(packages, failing)
    with ReaderProcess(CostlyPlaces()) as process:
        (reading,) = process.look(viewings, Wanted()).readings
        with pytest.raises(ExportError) as refused:
            list(reading.items())
        assert refused.value.code == "export_reader_failed"
        assert "viewings_reader 1.0" in refused.value.sentence
