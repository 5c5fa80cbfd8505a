"""The published document is the one that is kept: a rearrangement may not change it unseen."""

from __future__ import annotations

from tests.resource_server.openapi.published import KEPT, published, text


def test_the_published_document_is_the_one_kept() -> None:
    kept = KEPT.read_text(encoding="utf-8")
    assert text(published()) == kept, "run `python -m tests.resource_server.openapi.published`"
