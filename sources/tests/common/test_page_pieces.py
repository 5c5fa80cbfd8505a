"""Pages cut at the elements that repeat in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pdpp_sources.common import page_pieces as pieces
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import open_export


@pytest.mark.parametrize("chunk", [3, 700, 10_000])
def test_a_page_is_its_pieces_laid_end_to_end(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "CHUNK_BYTES", chunk)
    page = b"head" + b"".join(b'<div class="x %d">%s' % (n, b"a" * n * 90) for n in range(20))
    (tmp_path / "a.html").write_bytes(page)
    with open_export(tmp_path / "a.html") as export:
        found = list(pieces.page_pieces(export.members[0], re.compile(rb'<div class="x')))
    assert b"".join(piece for _, piece in found) == page
    assert len(found) == 21
    assert [offset for offset, _ in found] == [page.index(piece) for _, piece in found]


def test_a_piece_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(b"x" * (pieces.LARGEST_PIECE_BYTES + 1))
    with open_export(tmp_path / "a.html") as export, pytest.raises(BadRecord):
        list(pieces.page_pieces(export.members[0], re.compile(b"<p>")))
