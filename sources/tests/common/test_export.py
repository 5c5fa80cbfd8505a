import io
import os
import stat
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pdpp_kernel.system.open_files import MOST_DEPTH
from pdpp_sources.common.errors import ExportError, ExportUnsafe, MemberDamaged
from pdpp_sources.common.export import HEAD_BYTES, open_export, open_parts
from sources.tests.specimens.files import as_zip


def code_of(path: Path) -> str:
    with pytest.raises(ExportError) as caught:
        open_export(path)
    assert caught.value.sentence.endswith(".")
    assert caught.value.next_step
    return caught.value.code


def test_nothing_at_the_path(tmp_path: Path) -> None:
    assert code_of(tmp_path / "absent.mbox") == "export_not_found"


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert code_of(tmp_path / "pipe") == "export_unreadable"


def test_a_zip_without_its_table_of_contents(tmp_path: Path) -> None:
    path = as_zip({"a.txt": b"x" * 1000}, tmp_path / "a.zip")
    path.write_bytes(path.read_bytes()[:-30])
    assert code_of(path) == "export_truncated"


def test_a_zip_bomb_is_refused_before_a_byte_is_unpacked(tmp_path: Path) -> None:
    path = as_zip({f"{n}.txt": bytes(20_000_000) for n in range(3)}, tmp_path / "bomb.zip")
    assert code_of(path) == "export_unsafe"


def test_names_that_lead_out_are_reported_and_the_rest_is_kept(tmp_path: Path) -> None:
    names = ["../up.txt", "/root.txt", "a/../../b.txt", "C:/x.txt", "good/fine.txt"]
    with open_export(as_zip(dict.fromkeys(names, b"text"), tmp_path / "a.zip")) as export:
        assert [member.name for member in export.members] == ["good/fine.txt"]
        assert [skip.code for skip in export.refused] == ["unsafe_entry"] * 4


def test_a_symbolic_link_in_a_zip_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with open_export(path) as export:
        assert export.members == ()
        assert [skip.code for skip in export.refused] == ["unsafe_entry"]


def test_folders_are_looked_into_to_a_depth_that_no_export_has(tmp_path: Path) -> None:
    deepest = tmp_path.joinpath("a", *["b"] * (MOST_DEPTH + 1))
    deepest.mkdir(parents=True)
    (deepest / "beyond.txt").write_text("x")
    (deepest.parent / "within.txt").write_text("x")
    with open_export(tmp_path / "a") as export:
        assert [member.name for member in export.members] == ["b/" * MOST_DEPTH + "within.txt"]
        assert [skip.code for skip in export.refused] == ["unreadable_folder"]


def test_a_symbolic_link_in_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "own.txt").write_text("own")
    with open_export(folder) as export:
        assert [member.name for member in export.members] == ["own.txt"]


def test_nothing_outside_of_the_folder_is_opened_whenever_a_link_was_put_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "export"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "own.txt").write_text("own")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    for path in (folder / "link.txt", folder / ".." / "secret.txt"):
        with pytest.raises(ExportUnsafe):
            open_export(path, within=folder)
    with open_export(folder, within=folder) as export:
        (member,) = export.members
        with member.open() as stream:
            assert stream.read() == b"own"
        # swapped after the look at the folder: the file for a link, then the folder on the way
        (folder / "below" / "own.txt").unlink()
        (folder / "below" / "own.txt").symlink_to(tmp_path / "secret.txt")
        with pytest.raises(MemberDamaged):
            member.open()
        (folder / "below" / "own.txt").unlink()
        (folder / "below").rmdir()
        (tmp_path / "own.txt").write_text("secret")
        (folder / "below").symlink_to(tmp_path)
        with pytest.raises(MemberDamaged):
            member.open()


def test_an_archive_is_held_to_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    as_zip({"a": b"12345"}, tmp_path / "away.zip")
    as_zip({"a": b"12345"}, folder / "a.zip")
    with open_export(folder / "a.zip", within=folder) as export:
        assert export.total_bytes == 5
    with pytest.raises(ExportUnsafe):
        open_parts([tmp_path / "away.zip"], folder)


def test_positions_run_through_all_members_in_order_of_their_names(tmp_path: Path) -> None:
    with open_export(as_zip({"b": b"123", "a": b"12345"}, tmp_path / "a.zip")) as export:
        assert [(m.name, m.offset, m.end) for m in export.members] == [("a", 0, 5), ("b", 5, 8)]
        assert export.total_bytes == 8


def test_a_member_is_read_from_the_middle(tmp_path: Path) -> None:
    path = as_zip({"a": b"0123456789"}, tmp_path / "a.zip")
    with open_export(path) as export, export.members[0].open(at=4) as stream:
        assert stream.read() == b"456789"


def test_damaged_bytes_are_one_error(tmp_path: Path) -> None:
    path = as_zip({"a": bytes(range(256)) * 400}, tmp_path / "a.zip")
    content = bytearray(path.read_bytes())
    content[60:80] = b"\xff" * 20
    path.write_bytes(bytes(content))
    with open_export(path) as export:
        for opened in (export.members[0].open, export.members[0].exact):
            with pytest.raises(MemberDamaged), opened() as stream:
                stream.read()


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=5))
def test_no_damage_to_a_zip_is_more_than_an_error_with_a_name(
    tmp_path: Path, flips: list[tuple[float, int]]
) -> None:
    path = as_zip({"a/b.txt": b"text" * 20, "c.txt": b"more"}, tmp_path / "a.zip")
    content = bytearray(path.read_bytes())
    for place, value in flips:
        content[int(place * (len(content) - 1))] = value
    path.write_bytes(bytes(content))
    try:
        with open_export(path) as export:
            for member in export.members:
                member.head()
    except (ExportError, MemberDamaged):
        pass


@pytest.mark.parametrize("magic", [b"\x1f\x8b\x08", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a"])
def test_other_archives_say_what_to_do(tmp_path: Path, magic: bytes) -> None:
    (tmp_path / "export").write_bytes(magic + bytes(100))
    assert code_of(tmp_path / "export") == "export_unreadable"


def test_what_no_reader_takes_is_known(tmp_path: Path) -> None:
    with open_export(as_zip({"b": b"123", "a": b"12345"}, tmp_path / "a.zip")) as export:
        rest = export.without([export.only(export.members[:1])])
        assert [member.name for member in rest] == ["b"]


def test_a_mark_before_text_is_left_out_of_the_text_and_kept_in_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf0123")
    with open_export(tmp_path / "a.csv") as export:
        (member,) = export.members
        assert member.head() == b"0123"
        with member.open(at=2) as text, member.exact() as stored:
            assert text.read() == b"23"
            assert stored.read() == b"\xef\xbb\xbf0123"


class _Counted(io.BytesIO):
    """Bytes that know how many of them were read."""

    given = 0

    def read(self, size: int | None = -1, /) -> bytes:
        chunk = super().read(size)
        self.given += len(chunk)
        return chunk


def test_a_look_at_a_file_reads_little_more_than_it_shows(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"")
    film = _Counted(bytes(1_000_000))
    with open_export(tmp_path / "film.mp4") as export:
        (member,) = export.members
        assert len(replace(member, opener=lambda: film).head()) == HEAD_BYTES
    assert film.given < 2 * HEAD_BYTES
