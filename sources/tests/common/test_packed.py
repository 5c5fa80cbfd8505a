import gzip
import io
import random
import tarfile
import zipfile
from pathlib import Path

import pytest

from pdpp_sources.common import packed
from pdpp_sources.common.errors import ExportError, MemberDamaged
from pdpp_sources.common.export import Export, open_export, open_parts
from pdpp_sources.common.packed import GZIP, Deflated, bytes_of
from sources.tests.specimens.files import as_tgz, as_zip

FILES = {"Takeout/b.txt": b"second", "Takeout/a.txt": b"first" * 100_000}


def contents(export: Export) -> dict[str, bytes]:
    return {member.name: member.exact().read() for member in export.members}


def code_of(path: Path) -> str:
    with pytest.raises(ExportError) as caught:
        open_export(path)
    return caught.value.code


def test_a_tgz_is_read_in_place_and_in_its_own_order(tmp_path: Path) -> None:
    with open_export(as_tgz(FILES, tmp_path / "a.tgz")) as export:
        assert [member.name for member in export.members] == list(FILES)
        assert contents(export) == FILES
        assert export.total_bytes == sum(map(len, FILES.values()))


def test_any_place_of_deflated_bytes_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_FIRST_SPACING_BYTES", 100_000)
    monkeypatch.setattr(packed, "_MOST_KEPT", 8)
    chance = random.Random(1)
    whole = bytes(chance.choices(b"abcdefgh", k=5_000_000))
    two = gzip.compress(whole[:2_000_000]) + gzip.compress(whole[2_000_000:])
    deflated = Deflated(bytes_of(io.BytesIO(two)), GZIP, len(whole))
    for _ in range(200):
        at = chance.randrange(len(whole))
        found = deflated.read_at(at, 1000)
        assert found == whole[at : at + len(found)]
        assert found
    assert deflated.read_at(len(whole), 1) == b""


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_a_tgz_that_was_cut_or_damaged_is_refused(tmp_path: Path, cut: float) -> None:
    chance = random.Random(2)
    path = as_tgz({"a": chance.randbytes(100_000), "b": b"x"}, tmp_path / "a.tgz")
    body = path.read_bytes()
    path.write_bytes(body[: int(len(body) * cut)])
    assert code_of(path) == "export_truncated"
    tar = gzip.decompress(body)
    at = tar.rindex(b"ustar")
    path.write_bytes(gzip.compress(tar[:at] + b"USTAR" + tar[at + 5 :]))
    assert code_of(path) == "export_truncated"


def test_a_bomb_of_gzip_is_refused(tmp_path: Path) -> None:
    path = as_tgz({"a": bytes(60_000_000)}, tmp_path / "a.tgz")
    assert code_of(path) == "export_unsafe"


def test_what_no_file_of_a_tgz_may_be_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tgz"
    with tarfile.open(path, "w:gz") as tar:
        for name, kind in [("../up", b"0"), ("link", b"2"), ("hard", b"1"), ("pipe", b"6")]:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            tar.addfile(entry)
        for body in (b"first", b"other"):
            entry = tarfile.TarInfo("good.txt")
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    with open_export(path) as export:
        assert contents(export) == {"good.txt": b"first"}
        assert [skip.code for skip in export.refused] == ["unsafe_entry"] * 5


def test_one_packed_file_that_is_no_tar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mbox.gz").write_bytes(gzip.compress(b"From me" * 500))
    assert code_of(tmp_path / "a.mbox.gz") == "export_unreadable"


def test_parts_are_one_export_and_no_file_is_lost(tmp_path: Path) -> None:
    one = as_zip({"a": b"1", "same": b"2"}, tmp_path / "t-001.zip")
    two = as_tgz({"b": b"3", "same": b"4"}, tmp_path / "t-002.tgz")
    with open_parts([one, two]) as export:
        assert contents(export) == {"a": b"1", "same": b"2", "b": b"3", "t-002.tgz/same": b"4"}
        assert [member.offset for member in export.members] == [0, 1, 2, 3]


def test_a_part_that_cannot_be_opened_is_named_and_costs_no_other(tmp_path: Path) -> None:
    one = as_zip({"a": b"1"}, tmp_path / "t-001.zip")
    two = tmp_path / "t-002.zip"
    two.write_bytes(one.read_bytes()[:-30])
    with open_parts([one, two]) as export:
        assert contents(export) == {"a": b"1"}
        assert [(s.where, s.code) for s in export.refused] == [("t-002.zip", "unreadable_part")]
    with pytest.raises(ExportError):
        open_parts([two])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zips_that_are_all_a_zip_holds_are_read(tmp_path: Path, method: int) -> None:
    inner = as_zip(FILES, tmp_path / "inner.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "outer.zip", "w", method) as archive:
        archive.writestr("Part-1.zip", inner)
        archive.writestr("Part-2.zip", inner[:-30])
    with open_export(tmp_path / "outer.zip") as export:
        assert contents(export) == FILES
        assert [(s.where, s.code) for s in export.refused] == [("Part-2.zip", "unreadable_part")]


def test_a_zip_in_a_zip_beside_other_files_stays_packed(tmp_path: Path) -> None:
    inner = as_zip(FILES, tmp_path / "inner.zip").read_bytes()
    with open_export(as_zip({"a": b"1", "b.zip": inner}, tmp_path / "a.zip")) as export:
        assert [member.name for member in export.members] == ["a", "b.zip"]


def test_zips_in_a_zip_are_weighed_with_what_is_in_them(tmp_path: Path) -> None:
    inner = as_zip({"a": b"ab" * 8_000_000}, tmp_path / "inner.zip").read_bytes()
    parts = {f"{n}.zip": inner for n in range(20)}
    assert code_of(as_zip(parts, tmp_path / "a.zip")) == "export_unsafe"


@pytest.mark.parametrize("seed", range(40))
def test_no_damage_to_a_tgz_is_more_than_an_error_with_a_name(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    body = bytearray(gzip.decompress(as_tgz(FILES, tmp_path / "a.tgz").read_bytes()))
    for _ in range(chance.randrange(1, 5)):
        body[chance.randrange(1600)] = chance.randrange(256)
    (tmp_path / "a.tgz").write_bytes(gzip.compress(bytes(body), 1))
    try:
        with open_export(tmp_path / "a.tgz") as export:
            contents(export)
    except (ExportError, MemberDamaged):
        pass
