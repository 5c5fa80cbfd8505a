"""What servers answer, as they should and as nobody should."""

from __future__ import annotations

import pytest

from pdpp_sources.dav.dav_messages import LARGEST_ITEM_BYTES, LONGEST_WORD
from pdpp_sources.dav.multistatus import DAV, MOST_DEPTH, Multistatus, XmlRefused

BEGINNING = '<?xml version="1.0"?><d:multistatus xmlns:d="DAV:">'
ITEM = (
    "<d:response><d:href>/ada/work/a.ics</d:href><d:propstat><d:prop><d:getetag>{}</d:getetag>"
    "</d:prop><d:status>HTTP/1.1 {}</d:status></d:propstat></d:response>"
)


def parsed(text: str, step: int = 7) -> Multistatus:
    """The whole of it, byte by few bytes."""
    made, content = Multistatus(), text.encode()
    for start in range(0, len(content), step):
        made.feed(content[start : start + step])
    made.feed(b"")
    return made


def test_an_answer_comes_in_pieces_with_its_token_at_the_end() -> None:
    made = Multistatus()
    whole = (
        f"{BEGINNING}{ITEM.format('1', '200 OK')}<d:sync-token>t-2</d:sync-token></d:multistatus>"
    )
    answers = [answer for byte in whole.encode() for answer in made.feed(bytes([byte]))]
    assert [(one.href, one.text(f"{DAV}getetag")) for one in answers] == [("/ada/work/a.ics", "1")]
    assert made.token == "t-2"


def test_what_an_item_has_not_is_not_taken_for_a_value() -> None:
    made = Multistatus()
    (answer,) = made.feed(f"{BEGINNING}{ITEM.format('1', '404 Not Found')}".encode())
    assert answer.text(f"{DAV}getetag") is None


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE d:multistatus [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
        f"{BEGINNING}&b;</d:multistatus>",
        '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
        + BEGINNING
        + "&x;</d:multistatus>",
        '<!DOCTYPE d SYSTEM "http://127.0.0.1/evil.dtd">' + BEGINNING + "</d:multistatus>",
        BEGINNING + "<d:a>" * (MOST_DEPTH + 1) + "</d:a>" * (MOST_DEPTH + 1) + "</d:multistatus>",
        "<html><body>Sign in</body></html>",
        BEGINNING + "<d:response>",
        "",
    ],
    ids=["bomb", "file", "elsewhere", "deep", "page", "cut", "empty"],
)
def test_what_is_no_plain_multistatus_is_refused(text: str) -> None:
    with pytest.raises(XmlRefused):
        parsed(text)


def test_a_value_beyond_its_bound_is_said_to_be_cut_and_takes_no_room() -> None:
    made = Multistatus()
    long = ITEM.format("x" * (LARGEST_ITEM_BYTES + 1), "200 OK")
    (answer,) = made.feed(f"{BEGINNING}{long}".encode())
    found = answer.properties[f"{DAV}getetag"]
    assert found.is_cut
    assert len(found.text) <= LARGEST_ITEM_BYTES


def test_a_token_without_end_is_none() -> None:
    """Whoever asked keeps it of each of a thousand collections."""
    long = "t" * (LONGEST_WORD + 1)
    parser = Multistatus()
    ctag = f"<d:response><d:href>/a/</d:href><d:propstat><d:prop><d:getctag>{long}</d:getctag>"
    ended = "</d:prop></d:propstat></d:response>"
    (found,) = parser.feed(
        f"{BEGINNING}{ctag}{ended}<d:sync-token>{long}</d:sync-token></d:multistatus>".encode()
    )
    assert (found.word(f"{DAV}getctag"), parser.token) == (None, None)
