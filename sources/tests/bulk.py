"""Exports of one kind and any length, written entry by entry: each entry has some kilobytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from sources.tests.specimens import apple_health, browser, imessage
from sources.tests.specimens.databases import database

WORDS = "A line of words, and some more of them, to be read by nobody. " * 100
Entry = Callable[[int], str]


def _list(entry: Callable[[int], object]) -> Callable[[int], Iterator[str]]:
    """A JSON array of entries."""

    def chunks(count: int) -> Iterator[str]:
        yield "["
        for number in range(count):
            yield ("," if number else "") + json.dumps(entry(number))
        yield "]"

    return chunks


def _run(entry: Entry, head: str = "", tail: str = "") -> Callable[[int], Iterator[str]]:
    """Entries laid end to end."""

    def chunks(count: int) -> Iterator[str]:
        yield head
        for number in range(count):
            yield entry(number)
        yield tail

    return chunks


def _conversation(number: int) -> object:
    content = {"content_type": "text", "parts": [WORDS]}
    message = {"id": "m", "author": {"role": "user"}, "content": content, "create_time": 1.7e9}
    return {
        "conversation_id": f"c{number}",
        "current_node": "m",
        "mapping": {"m": {"id": "m", "message": message, "parent": None, "children": []}},
    }


def _chat(number: int) -> object:
    said = {"uuid": f"m{number}", "sender": "human", "text": WORDS}
    return {"uuid": f"c{number}", "name": "Garden", "chat_messages": [said]}


def _watched(number: int) -> object:
    return {
        "header": "YouTube",
        "title": f"Watched {number}",
        "time": "2024-03-01T10:00:00Z",
        "titleUrl": f"https://www.youtube.com/watch?v={number}",
        "details": [{"name": WORDS}],
        "products": ["YouTube"],
    }


def _telegram(count: int) -> Iterator[str]:
    """An account of chats with a hundred messages each."""
    yield '{"about": "Telegram", "chats": {"list": ['
    for number in range(count):
        if number % 100 == 0:
            header = f'"name": "Chat", "type": "personal_chat", "id": {number}, "messages": ['
            yield ("]}, {" if number else "{") + header
        said = {"id": number, "type": "message", "date_unixtime": "1705176000", "text": WORDS}
        yield ("," if number % 100 else "") + json.dumps(said)
    yield "]}]}}"


def _meta(count: int) -> Iterator[str]:
    """A chat that is one file."""
    yield '{"participants": [{"name": "Ada"}], "messages": ['
    for number in range(count):
        said = {"sender_name": "Ada", "timestamp_ms": 1705176000000 + number, "content": WORDS}
        yield ("," if number else "") + json.dumps(said)
    yield '], "title": "Bo"}'


def _visits(count: int) -> Iterator[bytes]:
    """A history of Chrome in which each page was visited once."""
    pages = [(n, f"https://example.org/{n}", WORDS, 1, 0, 0, 0) for n in range(count)]
    visits = [(n, n, browser.MARCH + n, 0, 0, 0, 0) for n in range(count)]
    yield database(browser.CHROME, [("urls", pages), ("visits", visits)])


def _texts(count: int) -> Iterator[bytes]:
    """A conversation in Apple's Messages."""
    said = [
        imessage.message(n, f"M{n}", body=imessage.archived(WORDS)) for n in range(1, count + 1)
    ]
    yield database(imessage.SCHEMA, [("message", said)])


BULK: dict[str, tuple[str, Callable[[int], Iterator[str] | Iterator[bytes]]]] = {
    "apple_health": (
        "export.xml",
        _run(
            lambda n: apple_health.heart_rate("60", n).replace('"0"/>', f'"{WORDS}"/>'),
            apple_health.HEAD,
            "</HealthData>",
        ),
    ),
    "browser": ("History", _visits),
    "imessage": ("chat.db", _texts),
    "bank": (
        "statement.ofx",
        _run(
            lambda n: (
                f"<STMTTRN><DTPOSTED>20240103<TRNAMT>-1.50<FITID>{n}<NAME>Shop<MEMO>{WORDS}"
                "</STMTTRN>\n"
            ),
            "OFXHEADER:100\n\n<OFX><STMTRS><BANKACCTFROM><ACCTID>1</BANKACCTFROM>",
            "</STMTRS></OFX>",
        ),
    ),
    "mail": (
        "Inbox",
        _run(
            lambda n: (
                f"From a@b Mon Jan  1 00:00:00 2024\nFrom: a@b\nMessage-ID: <{n}>\n\n{WORDS}\n\n"
            )
        ),
    ),
    "chatgpt": ("conversations.json", _list(_conversation)),
    "claude": ("conversations.json", _list(_chat)),
    "slack": (
        "Workspace/general/2023-11-14.json",
        _list(lambda n: {"type": "message", "user": "U1", "ts": f"17{n:08}.000100", "text": WORDS}),
    ),
    "whatsapp": ("_chat.txt", _run(lambda n: f"[13/01/24, 21:{n % 60:02}:00] Ada: {n} {WORDS}\n")),
    "telegram": ("result.json", _telegram),
    "phone": (
        "sms.xml",
        _run(
            lambda n: f'<sms address="1" date="{1705176000000 + n}" type="1" body="{WORDS}" />',
            "<smses>",
            "</smses>",
        ),
    ),
    "meta": ("inbox/bo_1/message_1.json", _meta),
    "evernote": (
        "All.enex",
        _run(
            lambda n: f"<note><title>{n}</title><content>{WORDS}</content></note>",
            "<en-export>",
            "</en-export>",
        ),
    ),
    "tracks": (
        "places.gpx",
        _run(
            lambda n: f'<wpt lat="47" lon="8.{n:06}"><name>{n}</name><desc>{WORDS}</desc></wpt>',
            "<gpx>",
            "</gpx>",
        ),
    ),
    "kindle": (
        "My Clippings.txt",
        _run(
            lambda n: (
                f"Book (Somebody)\n- Your Highlight on Location {n} | Added on Friday, January 5, "
                f"2024 1:09:52 PM\n\n{WORDS}\n==========\n"
            )
        ),
    ),
    "calendar": (
        "Home.ics",
        _run(
            lambda n: (
                f"BEGIN:VEVENT\r\nUID:{n}\r\nDTSTART:20240105T100000Z\r\nSUMMARY:Tea\r\n"
                f"DESCRIPTION:{WORDS}\r\nEND:VEVENT\r\n"
            ),
            "BEGIN:VCALENDAR\r\n",
            "END:VCALENDAR\r\n",
        ),
    ),
    "contacts": (
        "All.vcf",
        _run(lambda n: f"BEGIN:VCARD\nVERSION:3.0\nFN:Person {n}\nNOTE:{WORDS}\nEND:VCARD\n"),
    ),
    "google": ("watch-history.json", _list(_watched)),
    "table": ("shopping.csv", _run(lambda n: f"{n},{WORDS.replace(',', ';')}\n", "id,about\n")),
}

AT_ONCE = {
    "googlevoice": "a page is some days of one conversation, and refused beyond 16 MB",
    "notes": "a note is read as a whole, and refused beyond 8 MB",
}


def bulky(key: str, count: int, folder: Path) -> Path:
    """An export of that source with so many entries."""
    name, chunks = BULK[key]
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        stream.writelines(c if isinstance(c, bytes) else c.encode() for c in chunks(count))
    return folder
