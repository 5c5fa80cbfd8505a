"""The documentation as a site: what its pages become, and that each has its place."""

from __future__ import annotations

import re

from pages.site import DOCS, ROOT, heading_anchor, page_of_site, site_pages


def test_a_link_out_of_the_documents_is_text() -> None:
    there = "see [the tools](../../adapter/mcp-tools.json) and [errors](../errors.md#codes)"
    shown = page_of_site(there, DOCS / "contract")
    assert shown == "see the tools and [errors](../errors.md#codes)"


def test_the_guide_comes_first() -> None:
    assert page_of_site("[guide](guide.md#2-import)", DOCS) == "[guide](index.md#2-import)"


def test_a_link_elsewhere_stays() -> None:
    link = "[age](https://age-encryption.org)"
    assert page_of_site(link, DOCS) == link


def test_anchors_are_those_of_the_repository() -> None:
    assert heading_anchor("10. Tokens, families", "-") == "10-tokens-families"
    assert heading_anchor("`GET /v1/feeds`", "-") == "get-v1feeds"


def test_every_page_has_its_place() -> None:
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "pages/site.yml").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(site_pages())
