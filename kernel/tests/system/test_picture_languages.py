"""Whether pictures are read here, and in which languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pdpp_kernel.system import picture_languages
from pdpp_kernel.system.picture_languages import PICTURES, language_folder, languages_in, reads


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine whose languages lie in a folder of ours, and in no other."""
    monkeypatch.setattr(picture_languages, "_FOLDERS", (str(tmp_path / "none"), str(tmp_path)))
    monkeypatch.setattr(picture_languages, "find_spec", str)
    language_folder.cache_clear()
    yield tmp_path
    language_folder.cache_clear()


def install(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}.traineddata").touch()


def test_english_comes_first_and_no_more_than_four_languages_are_read(folder: Path) -> None:
    assert languages_in(folder) == languages_in(folder / "none") == []
    install(folder, "deu", "eng", "osd", "equ")
    (folder / "fra.txt").touch()
    assert languages_in(folder) == ["eng", "deu"]
    install(folder, "spa", "ita", "fra")
    assert languages_in(folder) == ["eng", "deu", "fra", "ita"]


def test_pictures_are_read_where_a_language_lies(folder: Path) -> None:
    install(folder, "osd")
    assert not any(map(reads, PICTURES))
    language_folder.cache_clear()
    install(folder, "deu")
    assert all(map(reads, PICTURES))
    assert not reads("image/gif")
    assert not reads("text/plain")


@pytest.mark.parametrize("missing", ["tesserocr", "PIL"])
def test_without_what_reads_them_no_picture_is_read(
    folder: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(folder, "eng")

    def found(name: str) -> str | None:
        return None if name == missing else name

    monkeypatch.setattr(picture_languages, "find_spec", found)
    assert language_folder() is None
    assert not reads("image/png")
