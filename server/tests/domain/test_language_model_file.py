"""The language model, kept in a file that says the same in less room."""

from __future__ import annotations

import subprocess
import sys
from array import array
from pathlib import Path

import pytest
from py3langid.langid import MODEL_DIR, MODEL_FILE

from personal_server.domain import language_model_file
from personal_server.domain.language_model import LanguageModel
from personal_server.domain.language_model_file import framed, keep, kept_in, read_model

# the texts `a`, `ab` and `b`, of which the second ends in the third
CONTENT = framed(
    [
        b"srensr",
        array("f", range(3)).tobytes(),
        array("I", [7, 8, 9]).tobytes(),
        b"abb",
        array("I", [0, 2, 3, 3, 3]).tobytes(),
        array("I", [0, 0, 0, 2]).tobytes(),
        array("I", [0, 1, 0, 2]).tobytes(),
        array("I", [0, 0, 2, 3]).tobytes(),
        bytes([0, 2, 1]),
        array("H", [10, 20, 30]).tobytes(),
    ]
)


def test_what_is_kept_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "language_model.00000001"
    keep(CONTENT, path)
    found = kept_in(path)
    assert found is not None
    assert (found.codes, list(found.begins)) == (["sr", "en", "sr"], [0, 1, 2])
    assert list(found.features) == [0, 1, 0, 2]
    assert found.columns_of(found.weights(1)) == [10, 8, 20]
    assert found.columns_of(found.weights(1) + found.weights(2)) == [17, 38, 29]
    steps = [found.following(state, byte) for state in range(4) for byte in b"abc"]
    assert steps == [1, 2, 0, 1, 3, 0, 1, 2, 0, 1, 2, 0]


def test_the_package_is_found_without_loading_it() -> None:
    assert language_model_file._packed() == MODEL_DIR / MODEL_FILE  # pyright: ignore[reportPrivateUsage]


def test_those_of_other_versions_go_and_those_that_were_never_finished(tmp_path: Path) -> None:
    first, second = tmp_path / "language_model.00000001", tmp_path / "language_model.00000002"
    (tmp_path / "language_model.cpython-311.pyc").touch()
    (tmp_path / "language_model.new-killed00").touch()
    keep(CONTENT, first)
    keep(CONTENT, second)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {second.name, "language_model.cpython-311.pyc"}


@pytest.mark.parametrize("is_gone", [False, True])
def test_what_cannot_take_its_place_is_refused_and_leaves_nothing(
    is_gone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(new: Path, _: Path) -> None:
        if is_gone:
            new.unlink()
        raise PermissionError

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError):
        keep(CONTENT, tmp_path / "language_model.00000001")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_kept_may_be_read_by_all(tmp_path: Path) -> None:
    path = tmp_path / "language_model.00000001"
    keep(CONTENT, path)
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_damaged_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "language_model.00000001"
    keep(CONTENT, path)
    whole = path.read_bytes()
    length = whole[:11] + b"\x05" + whole[12:]  # of the first array
    content = whole[:-100] + b"x" + whole[-99:]
    for damaged in (b"", whole[:40], whole[:-1], bytes(64), length, content):
        path.write_bytes(damaged)
        assert kept_in(path) is None


def test_where_nothing_can_be_kept_the_model_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    model = LanguageModel(read_model(tmp_path / "file" / "folder"))
    assert model.classify("Labas rytas, siunčiu jums praėjusio mėnesio sąskaitą")[0] == "lt"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process has in memory")
def test_a_process_that_tells_languages_takes_little_of_the_model_into_memory() -> None:
    program = """
import sys
from pathlib import Path
def resident():
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmRSS:") + 1]) * 1_024
before = resident()
from personal_server.domain.language_model import IDENTIFIER
for each in range(300):
    IDENTIFIER.classify(f"{each * 7_919:x} lettera {each} Brief carta {each * 104_729:o}")
assert resident() - before < 16 * 2**20, resident() - before
"""
    language_model_file.read_model()
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
