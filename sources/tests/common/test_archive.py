from pathlib import Path
from random import Random

import pytest

from pdpp_sources.common import archive
from pdpp_sources.common.errors import ExportError, MemberDamaged
from pdpp_sources.common.export import open_export
from sources.tests import hostile
from sources.tests.specimens.files import as_zip

FILES = {"good/fine.txt": b"text"}


def names_and_refusals(path: Path) -> tuple[list[str], list[str]]:
    with open_export(path) as export:
        return [m.name for m in export.members], [skip.code for skip in export.refused]


def code_of(path: Path) -> str:
    with pytest.raises(ExportError) as caught:
        open_export(path)
    return caught.value.code


def test_what_leads_out_links_or_is_no_file_is_reported_and_the_rest_kept(tmp_path: Path) -> None:
    path = hostile.with_hostile_entries(FILES, tmp_path / "a.zip")
    names, refused = names_and_refusals(path)
    assert names == ["good/fine.txt"]
    assert refused == ["unsafe_entry"] * (len(hostile.LEADING_OUT) + 3)


def test_names_in_a_report_are_short(tmp_path: Path) -> None:
    with open_export(hostile.with_hostile_entries(FILES, tmp_path / "a.zip")) as export:
        assert max(len(skip.where) for skip in export.refused) <= 200


def test_encrypted_entries_are_named(tmp_path: Path) -> None:
    path = hostile.encrypted(FILES, tmp_path / "a.zip")
    assert names_and_refusals(path) == ([], ["unsafe_entry"])


def test_unknown_packing_is_named(tmp_path: Path) -> None:
    path = hostile.of_unknown_packing(FILES, tmp_path / "a.zip")
    assert names_and_refusals(path) == ([], ["unsafe_entry"])


def test_entries_that_share_one_body_are_not_read(tmp_path: Path) -> None:
    path = hostile.overlapping(FILES, tmp_path / "a.zip", copies=50)
    names, refused = names_and_refusals(path)
    assert len(names) == 2
    assert refused == ["unsafe_entry"] * 50


def test_a_second_file_of_one_name_is_reported(tmp_path: Path) -> None:
    path = as_zip({"a.txt": b"first", "b.txt": b"second"}, tmp_path / "a.zip")
    path.write_bytes(path.read_bytes().replace(b"b.txt", b"a.txt"))
    names, refused = names_and_refusals(path)
    assert (names, refused) == (["a.txt"], ["unsafe_entry"])


def test_an_archive_in_an_archive_stays_packed(tmp_path: Path) -> None:
    with open_export(hostile.nested(tmp_path / "a.zip")) as export:
        assert {member.suffix for member in export.members} == {".zip"}
        assert export.total_bytes < 10_000_000


def test_an_entry_never_gives_more_than_it_said(tmp_path: Path) -> None:
    damaged = pytest.raises(MemberDamaged)
    with open_export(hostile.lying(tmp_path / "a.zip")) as export, damaged:
        export.members[0].exact().read()


def test_a_table_of_contents_without_end_is_not_loaded(tmp_path: Path) -> None:
    assert code_of(hostile.of_endless_contents(tmp_path / "a.zip")) == "export_unsafe"


def test_a_table_of_contents_of_very_many_files_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_ENTRIES", 10)
    many = {f"{number}.txt": b"text" for number in range(11)}
    assert code_of(as_zip(many, tmp_path / "a.zip")) == "export_unsafe"


def test_one_entry_out_of_proportion_is_left_out(tmp_path: Path) -> None:
    files = {"bomb.txt": bytes(20_000_000), "noise.bin": Random(1).randbytes(1_000_000)}
    names, refused = names_and_refusals(as_zip(files, tmp_path / "a.zip"))
    assert names == ["noise.bin"]
    assert refused == ["unsafe_entry"]
