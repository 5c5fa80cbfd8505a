"""The arrays of the language model, kept in a file that processes share."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from personal_server.domain.language_model import LanguageModel
from personal_server.domain.language_model_file import ModelArrays, keep, mapped, read_model

ARRAYS = ModelArrays(
    np.array(["sr", "en", "sr"], "S2"),
    np.arange(3, dtype=np.float32),
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array([0, 256], np.uint32),
    np.array([-1, 1], np.int32),
    np.arange(512, dtype=np.uint32) % 2,
)


def test_what_is_kept_is_what_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "language_model.00000001"
    keep(ARRAYS, path)
    found = mapped(path)
    assert found is not None
    assert [(a.dtype, a.tolist()) for a in found] == [(a.dtype, a.tolist()) for a in ARRAYS]


def test_those_of_other_versions_go_and_those_that_were_never_finished(tmp_path: Path) -> None:
    first, second = tmp_path / "language_model.00000001", tmp_path / "language_model.00000002"
    (tmp_path / "language_model.cpython-311.pyc").touch()
    (tmp_path / "language_model.new-killed00").touch()
    keep(ARRAYS, first)
    keep(ARRAYS, second)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {second.name, "language_model.cpython-311.pyc"}


def test_a_damaged_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "language_model.00000001"
    keep(ARRAYS, path)
    whole = path.read_bytes()
    length = whole[:11] + b"\x05" + whole[12:]  # of the first array
    content = whole[:-100] + b"x" + whole[-99:]
    for damaged in (b"", whole[:40], whole[:-1], bytes(64), length, content):
        path.write_bytes(damaged)
        assert mapped(path) is None


def test_where_nothing_can_be_kept_the_model_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    model = LanguageModel(read_model(tmp_path / "file" / "folder"))
    assert model.classify("Labas rytas, siunčiu jums praėjusio mėnesio sąskaitą")[0] == "lt"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what of a map is in memory")
def test_what_is_kept_is_checked_without_taking_it_into_memory(tmp_path: Path) -> None:
    kept = tmp_path / "language_model.00000001"
    keep(ARRAYS._replace(following=np.zeros(2_000_000, np.uint32)), kept)
    arrays = mapped(kept)
    shown = Path("/proc/self/smaps").read_text()
    resident = re.findall(rf"{re.escape(str(kept))}\n(?:.*\n)*?Rss: +(\d+) kB", shown)
    assert arrays is not None
    assert min(map(int, resident)) * 1_024 < kept.stat().st_size / 10
