"""Mails and chats by the roles of their declaration, and what is said around a message."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace
from selectolax.lexbor import LexborHTMLParser

from pdpp_kernel.declaration import Aggregations, Property, Stream
from pdpp_kernel.values import ValueKind, render_instant
from pdpp_sources.whatsapp import DECLARATION as WHATSAPP
from personal_server.console.presentations import line_fields
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.stored import Batch, RecordWrite
from personal_server.storage.authorization_rows import GrantRow
from server.tests.console.browsing import SECOND, Browser, allow
from server.tests.console.household import HOME, Household, mail_request
from server.tests.enforcement.mailbox import mails

CHAT = "cin_chat"
OUTSIDE = "cin_forum"


@dataclass
class Words:
    """A page as its reader meets it."""

    page: LexborHTMLParser

    def all(self, selector: str) -> list[str]:
        return [" ".join(node.text().split()) for node in self.page.css(selector)]


def read(browser: Browser, path: str) -> Words:
    page = browser.get(path)
    assert page.status == 200, page.text
    return Words(LexborHTMLParser(page.html))


def outsiders() -> dict[str, Any]:
    """The same roles under other names."""
    text = {"type": "string", "x_pdpp_type": "text"}
    properties: dict[str, Any] = {
        "id": {"type": "string"},
        "topic": {"type": "string", "x_pdpp_role": "conversation"},
        "poster": {"type": "string", "x_pdpp_role": "author"},
        "posted": {"type": "string", "format": "date-time", "x_pdpp_role": "event-time"},
        "post": text,
    }
    stream = {
        "name": "posts",
        "semantics": "append_only",
        "display": {"label": "Posts"},
        "schema": {"type": "object", "properties": properties, "required": ["id", "posted"]},
        "primary_key": ["id"],
        "cursor_field": "posted",
        "consent_time_field": "posted",
        "selection": {"fields": True, "resources": True},
        "query": {"search": {"lexical_fields": ["post"]}},
    }
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://forum.example/connectors/forum"},
        "connector_key": "forum",
        "declaration_version": "1",
        "display": {"name": "Forum"},
        "streams": [stream],
    }


def chat(house: Household, raw: dict[str, Any], connection_id: str, names: dict[str, str]) -> None:
    """Forty messages of two conversations, turn by turn."""
    declared = parse_declaration(raw)
    house.declare(raw)
    house.connect(connection_id, declared.connector_key, declared.source_id, "Chats")
    rows = [
        {
            "id": f"m{number:02}",
            names["conversation"]: f"c{number % 2}",
            names["author"]: ("Grace", "Alan")[number % 4 // 2],
            names["at"]: render_instant(house.clock.now_ns - (40 - number) * SECOND),
            names["text"]: f"said {number}",
        }
        for number in range(40)
    ]
    put(house, declared.streams[names["stream"]], connection_id, rows)


def put(
    house: Household, stream: Stream, connection_id: str, rows: Sequence[dict[str, Any]]
) -> None:
    writes = [RecordWrite(row["id"], row, house.clock.now_ns) for row in rows]
    house.records.commit(Batch(connection_id, stream, writes, house.clock.now_ns))


NAMES = {
    "stream": "messages",
    "conversation": "chat_id",
    "author": "author",
    "at": "sent_at",
    "text": "text",
}
OTHER_NAMES = {
    "stream": "posts",
    "conversation": "topic",
    "author": "poster",
    "at": "posted",
    "text": "post",
}


@pytest.mark.parametrize(
    ("raw", "account", "names"),
    [(WHATSAPP, CHAT, NAMES), (outsiders(), OUTSIDE, OTHER_NAMES)],
    ids=["ours", "an outsider's"],
)
def test_a_message_stands_among_the_ten_before_and_after_it(
    house: Household, raw: dict[str, Any], account: str, names: dict[str, str]
) -> None:
    chat(house, raw, account, names)
    browser = house.signed_in()
    page = read(browser, f"/owner/records/{account}/{names['stream']}/m21")
    texts = page.all(".bubbles .said")
    assert texts == [f"said {number}" for number in range(1, 40, 2)]
    assert page.all(".bubbles .here .said") == ["said 21"]
    first = read(browser, f"/owner/records/{account}/{names['stream']}/m00")
    assert first.all(".bubbles .said") == [f"said {number}" for number in range(0, 22, 2)]
    assert set(first.all(".bubbles .by")) == {"Grace", "Alan"}


@pytest.mark.parametrize("number", [0, 4, 15, 29])
def test_a_message_is_shown_once_among_many_of_the_same_instant(
    house: Household, number: int
) -> None:
    chat(house, WHATSAPP, CHAT, NAMES)
    at = render_instant(house.clock.now_ns - 20 * SECOND)
    rows = [
        {"id": f"s{n:02}", "chat_id": "c1", "author": "Alan", "sent_at": at, "text": f"burst {n}"}
        for n in range(30)
    ]
    put(house, parse_declaration(WHATSAPP).streams["messages"], CHAT, rows)
    page = read(house.signed_in(), f"/owner/records/{CHAT}/messages/s{number:02}")
    texts = page.all(".bubbles .said")
    assert page.all(".bubbles .here .said") == [f"burst {number}"]
    assert len(texts) == len(set(texts)) <= 21
    before = texts[: texts.index(f"burst {number}")]
    assert len(before) == 10
    order = [f"said {n}" for n in range(1, 20, 2)] + [f"burst {n}" for n in range(number)]
    assert before == [text for text in order if text in before]


def test_looking_at_a_conversation_is_told_to_nobody(house: Household) -> None:
    chat(house, WHATSAPP, CHAT, NAMES)
    read(house.signed_in(), f"/owner/records/{CHAT}/messages/m21")
    assert not house.disclosures.disclosures_of(CHAT, "messages", "m20", 10)


def test_a_mail_reads_as_a_mail(house: Household) -> None:
    page = read(house.signed_in(), f"/owner/records/{HOME}/messages/m004")
    (letter,) = page.all('[data-field="letter"]')
    assert "Karl Popper" in letter
    assert "secret number 4" in letter
    assert page.all(".bubbles") == []


def test_a_mail_without_a_subject_is_called_by_sender_and_day(house: Household) -> None:
    row = {
        "id": "m900",
        "sent_at": "2026-03-14T09:30:00Z",
        "subject": "",
        "from_name": "דנה כהן",
        "body": "Hello",
    }
    house.fill(HOME, "messages", [row])
    page = read(house.signed_in(), f"/owner/records/{HOME}/messages/m900")
    (title,) = page.all("h1")
    assert title.endswith("14 Mar 2026")
    assert page.all("h1 > bdi") == ["דנה כהן"]  # so that the date stays whole
    (named,) = page.all("title")
    assert named.startswith("\u2068דנה כהן\u2069, 14 Mar 2026")


def test_a_text_that_an_app_does_not_get_is_not_called_missing(house: Household) -> None:
    browser = house.signed_in()
    allow(browser, house.ask(mail_request(fields=["subject", "from_name", "recipients"])))
    (grant,) = house.rows(GrantRow)
    page = read(browser, f"/owner/access/{grant.grant_id}/records/{HOME}/messages/m004")
    assert len(page.all(".letter")) == 1
    assert page.all(".letter > p") == []
    row = {"id": "m901", "sent_at": "2026-03-14T09:30:00Z", "subject": "Empty", "from_name": "Ada"}
    house.fill(HOME, "messages", [row])
    assert len(read(browser, f"/owner/records/{HOME}/messages/m901").all(".letter > p")) == 1


def test_a_number_whose_unit_field_is_not_declared_is_no_money() -> None:
    source = mails()
    size = Property("size", {"x_pdpp_unit_field": "gone"}, ValueKind.INTEGER)
    measured = replace(
        source.declared,
        properties={**source.declared.properties, "size": size},
        aggregations=Aggregations(sum=("size",), group_by_time=("sent_at",)),
    )
    assert line_fields(dataclasses.replace(source, declared=measured)) == ("size",)
