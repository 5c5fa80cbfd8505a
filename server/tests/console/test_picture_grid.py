"""Pictures as a grid, and the thumbnails that it loads."""

from __future__ import annotations

import struct
from typing import Any

from pdpp_sources.google.reader import DECLARATION as GOOGLE
from personal_server.console.record_pages import LARGEST_WHOLE_BYTES
from personal_server.console.thumbnails import embedded_thumbnail
from personal_server.domain.declaration_document import parse_declaration
from server.tests.console.browsing import Browser, Page, marked
from server.tests.console.household import Household
from server.tests.console.test_presentations import put, read
from server.tests.console.test_record_lists import filled

ACCOUNT = "cin_google"
SMALL = b"\xff\xd8\xff\xdb small \xff\xd9"


def jpeg(thumbnail: bytes = b"", turned: int = 1, size: int = 0, order: str = "<") -> bytes:
    """A JPEG with an Exif segment as cameras write it, and so many bytes behind it."""
    mark = b"II*\x00" if order == "<" else b"MM\x00*"
    first = struct.pack(order + "HHHIHHI", 1, 0x0112, 3, 1, turned, 0, 26)
    second = struct.pack(order + "HHHIIHHIII", 2, 0x0201, 4, 1, 56, 0x0202, 4, 1, len(thumbnail), 0)
    body = mark + struct.pack(order + "I", 8) + first + second + thumbnail
    segment = b"Exif\x00\x00" + body
    head = b"\xff\xd8\xff\xe1" + (len(segment) + 2).to_bytes(2, "big") + segment
    return head + b"\xff\xda" + bytes(size)


def photos(house: Household, *files: tuple[bytes, str]) -> str:
    path = filled(house, GOOGLE, ACCOUNT, "photos", [])
    rows: list[dict[str, Any]] = []
    for number, (content, kind) in enumerate(files):
        upload, _ = house.records.receive_blob(ACCOUNT, [content], kind, 0, 10_000_000)
        reference = {
            "blob_id": upload.blob_id,
            "mime_type": kind,
            "size_bytes": len(content),
            "filename": f"IMG_{number}.jpg",
        }
        rows.append(
            {
                "id": f"p{number}",
                "taken_at": f"2026-11-1{8 - number // 2}T22:30:00Z",
                "filename": f"IMG_{number}.jpg",
                "description": "The beach" if number == 0 else None,
                "mime_type": kind,
                "blob_ref": reference,
            }
        )
    put(house, parse_declaration(GOOGLE).streams["photos"], ACCOUNT, rows)
    return path


def test_pictures_stand_by_day_with_words_in_their_place(
    house: Household, browser: Browser
) -> None:
    house.locale.keep("Europe/Rome", None)
    files = [(jpeg(SMALL), "image/jpeg")] * 3 + [(b"film", "video/mp4")]
    path = photos(house, *files)
    page = read(browser, path)
    assert page.all(".day h3") == ["Wed, 18 Nov 2026", "Tue, 17 Nov 2026"]
    images = page.page.css(".pictures img")
    assert {each.attributes["alt"] for each in images} == {"The beach", "IMG_1.jpg", "IMG_2.jpg"}
    assert {each.attributes["loading"] for each in images} == {"lazy"}
    assert page.all(".no-picture") == ["IMG_3.jpg"]
    assert len(page.page.css(".pictures a")) == 4
    (table,) = marked(browser.get(path), "as-table", "href")
    assert len(read(browser, table).all("table.cells tbody tr")) == 4
    assert len(marked(browser.get(path), "as-map", "href")) == 1


def thumbnail(browser: Browser, path: str, number: int) -> Page:
    return browser.get(f"{path}/p{number}/files/blob_ref/thumbnail")


def test_a_thumbnail_is_as_small_as_the_picture_has_one(house: Household, browser: Browser) -> None:
    large = b"\x89PNG\r\n\x1a\n" + bytes(LARGEST_WHOLE_BYTES)
    path = photos(
        house,
        (jpeg(SMALL, size=1_000_000), "image/jpeg"),
        (jpeg(size=100), "image/jpeg"),
        (large, "image/png"),
        (b"<html>", "image/png"),
        (b"none<script>", "text/html"),
    )
    sizes = [thumbnail(browser, path, n).headers.get("content-length") for n in range(2)]
    assert sizes == [str(len(SMALL)), str(len(jpeg(size=100)))]
    kinds = [thumbnail(browser, path, n).headers["content-type"] for n in range(3)]
    assert kinds == ["image/jpeg", "image/jpeg", "image/svg+xml"]
    assert "sandbox" in thumbnail(browser, path, 2).headers["content-security-policy"]
    assert {thumbnail(browser, path, n).headers["cache-control"] for n in range(3)} == {"no-store"}
    assert [thumbnail(browser, path, n).error for n in (3, 4)] == ["not_found"] * 2


def test_a_thumbnail_is_turned_as_its_picture_is() -> None:
    for order in "<>":
        assert embedded_thumbnail(jpeg(SMALL, order=order)) == SMALL
        turned = embedded_thumbnail(jpeg(SMALL, 6, order=order)) or b""
        assert turned.endswith(SMALL[2:])
        assert turned.startswith(b"\xff\xd8\xff\xe1")
        assert b"\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06" in turned


def test_what_is_no_picture_has_no_thumbnail() -> None:
    whole = jpeg(SMALL)
    for length in range(0, len(whole), 3):
        embedded_thumbnail(whole[:length])
    for place in range(2, len(whole)):
        embedded_thumbnail(whole[:place] + b"\xff" + whole[place + 1 :])
    assert embedded_thumbnail(b"") is None
    assert embedded_thumbnail(jpeg(b"none")) is None
