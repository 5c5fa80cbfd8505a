"""Which item of which collection an address names."""

from __future__ import annotations

import pytest

from pdpp_sources.dav.dav_paths import item_path

COLLECTION = "https://dav.example.org/ada/work/"


@pytest.mark.parametrize(
    ("href", "path"),
    [
        ("a.ics", "/ada/work/a.ics"),
        ("/ada/work/a%40b.ics", "/ada/work/a@b.ics"),
        ("/ada/work/a@b.ics", "/ada/work/a@b.ics"),
        ("https://DAV.example.org/ada/work/a.ics", "/ada/work/a.ics"),
        ("/ada/work/%C3%A9t%C3%A9.ics", "/ada/work/%C3%A9t%C3%A9.ics"),
        ("https://evil.example.org/ada/work/a.ics", None),
        ("https://dav.example.org:8443/ada/work/a.ics", None),
        ("//evil.example.org/ada/work/a.ics", None),
        ("/ada/work/../../bob/work/a.ics", None),
        ("/ada/work/%2e%2e/private/a.ics", None),
        ("/bob/work/a.ics", None),
        ("/ada/workshop/a.ics", None),
        ("/ada/work/", None),
        ("/ada/work/" + "a" * 1_000, None),
        ("http://[::1", None),
    ],
)
def test_an_item_lies_in_its_collection_on_its_host(href: str, path: str | None) -> None:
    assert item_path(href, COLLECTION) == path
