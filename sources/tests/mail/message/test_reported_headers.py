"""Dates and lines of headers that other parsers of mail read otherwise."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from pdpp_kernel.source_item import Data
from sources.tests.reading import read_path, records_of


def message(raw: bytes, tmp_path: Path) -> Data:
    (tmp_path / "a.eml").write_bytes(raw)
    (found,) = records_of(read_path(tmp_path / "a.eml"), "messages")
    return found


HEAD = b"From: Ann <ann@b.example>\nTo: bob@b.example\nSubject: Hi\n"


@pytest.mark.parametrize(
    ("date", "sent_at"),
    [
        (b"Wed 29 May 2019 06:09:22 PM EDT", "2019-05-29T22:09:22Z"),
        (b"Wed, 29 May 2019 12:09:22 AM +0000", "2019-05-29T00:09:22Z"),
        (b"Wed, 29 May 2019 12:09 p.m. +0000", "2019-05-29T12:09:00Z"),
        (b"Fri, 23 Aug 2002 22:46:34 GMT+1", "2002-08-23T21:46:34Z"),
        (b"Thu, 3 Sep 2015 19:23:42 UTC-03:30", "2015-09-03T22:53:42Z"),
        (b"Sat, 8 Jun 2002 1:5:13 +-0500", "2002-06-08T06:05:13Z"),
        (b"Wed, 29 May 2019 18:09:22 PM +0000", "2019-05-29T18:09:22Z"),
        (b"Tue, 17 Jul 2012 22:23:35.882 +0000", "2012-07-17T22:23:35Z"),
        (b"Tue, 17 Jul 2012 22:23:35 -0330", "2012-07-18T01:53:35Z"),
        ("l\xf6r, 29 maj 1999 00:24:04 +0200 (CEST)".encode(), "1999-05-28T22:24:04Z"),
        (b"Di, 17 Mai 2005 12:31:00 0200", "2005-05-17T10:31:00Z"),
        (b"05-FEB-2021 22:05:02", "2021-02-05T22:05:02Z"),
        (b"2012-07-17T22:23:35+02:00", "2012-07-17T20:23:35Z"),
        (b"2012-07-17 22:23:35", "2012-07-17T22:23:35Z"),
    ],
)
def test_a_date_is_read_with_its_half_of_the_day_and_its_parts_of_a_second(
    date: bytes, sent_at: str, tmp_path: Path
) -> None:
    raw = HEAD + b"Message-ID: <1@b>\nDate: " + date + b"\n\nWords\n"
    assert message(raw, tmp_path)["sent_at"] == sent_at


@pytest.mark.parametrize("stray", [b"quite Delivered-To: x@y.example\n", b"(softfail)\n-\n"])
def test_a_line_that_is_no_header_ends_none_that_follow_it(stray: bytes, tmp_path: Path) -> None:
    raw = b"Received: by b.example; Tue, 17 Jul 2012 22:23:35 +0000\nMessage-ID: <1@b>\n"
    found = message(raw + stray + HEAD + b"\nWords\n", tmp_path)
    assert (found["from_address"], found["subject"]) == ("ann@b.example", "Hi")
    assert (found["to_address"], found["body"]) == ("bob@b.example", "Words")


def test_words_without_an_empty_line_before_them_stay_words(tmp_path: Path) -> None:
    raw = HEAD + b"Message-ID: <1@b>\nHello Bob,\nSubject: of my mail\nis this.\n\nYours\n"
    found = message(raw, tmp_path)
    assert found["subject"] == "Hi"
    assert found["body"].startswith("Hello Bob,")


def test_a_named_text_speaks_where_the_part_before_it_is_empty(tmp_path: Path) -> None:
    part = b'--b\nContent-Type: text/plain; name="%s"\n\n%s\n'
    parts = part % (b"a", b"") + part % (b"b", b"Words") + part % (b"c", b"File") + b"--b--\n"
    kind = b'Message-ID: <1@b>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n'
    found = message(HEAD + kind + parts, tmp_path)
    assert (found["body"], found["attachment_count"]) == ("Words", 3)


def test_many_empty_parts_cost_little(tmp_path: Path) -> None:
    kind = b'Message-ID: <1@b>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n'
    parts = b"--b\nContent-Disposition: attachment; filename=a\n\n\n" * 5_000
    begun = process_time()
    found = message(HEAD + kind + parts + b"--b--\n", tmp_path)
    assert process_time() - begun < 2
    assert found["attachment_count"] == 5_000
