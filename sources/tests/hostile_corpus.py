"""Files that cost far more to read than their size tells, with good entries around the bad one.

Few of them break a rule: they nest, repeat or leave open what real exports hold a little of.
"""

from __future__ import annotations

import base64
import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sources.tests.hostile_attachments import ATTACHED
from sources.tests.specimens.fit import SETTINGS, SWIM, fit_file, fit_kind, fit_message
from sources.tests.specimens.google_voice import chat, said, who
from sources.tests.specimens.meta import on_page, page

MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HostileFile:
    """One file; `good` of its entries are harmless and must be stored all the same."""

    name: str
    content: Callable[[], bytes]
    good: int = 0


def _mail(name: str, *parts: str | bytes, times: int = 1) -> HostileFile:
    """A mailbox: a good message, the bad one, a good message."""

    def content() -> bytes:
        bad = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
        head = b"From: bad@x.example\nTo: me@x.example\nMessage-ID: <bad>\n"
        message = head + bad if bad[:1].isalpha() else head + b"Subject: bad\n" + bad
        return _letter(1) + (_FROM + message + b"\n\n") * times + _letter(2)

    return HostileFile(f"mail {name}.mbox", content, 2)


_FROM = b"From a@x.example Mon Jan  1 00:00:00 2024\n"
_HTML = "Content-Type: text/html\n\n<body>"


def _letter(number: int) -> bytes:
    body = f"From: good{number}@x.example\nMessage-ID: <{number}>\nSubject: good\n\ngood\n\n"
    return _FROM + body.encode()


def _lines(name: str, kind: str, bad: str | Callable[[], str], good: str) -> HostileFile:
    """A calendar or an address book: a good entry, the bad one, a good entry."""

    def content() -> bytes:
        inner = bad if isinstance(bad, str) else bad()
        whole = "".join((good.format(1), inner, good.format(2)))
        frame = "BEGIN:VCALENDAR\r\n{}END:VCALENDAR\r\n" if kind == "ics" else "{}"
        return frame.replace("{}", whole).encode()

    return HostileFile(f"{name}.{kind}", content, 2)


_EVENT = "BEGIN:VEVENT\r\nUID:g{}\r\nSUMMARY:good\r\nDTSTART:20240101T100000Z\r\nEND:VEVENT\r\n"
_CARD = "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Good {}\r\nEND:VCARD\r\n"


def _event(name: str, bad: str | Callable[[], str]) -> HostileFile:
    def whole() -> str:
        inner = bad if isinstance(bad, str) else bad()
        head = "BEGIN:VEVENT\r\nUID:bad\r\nSUMMARY:bad\r\nDTSTART:20240101T100000Z\r\n"
        return head + inner + "\r\nEND:VEVENT\r\n"

    return _lines(f"calendar {name}", "ics", whole, _EVENT)


def _card(name: str, bad: str | Callable[[], str], version: str = "3.0") -> HostileFile:
    def whole() -> str:
        inner = bad if isinstance(bad, str) else bad()
        return f"BEGIN:VCARD\r\nVERSION:{version}\r\nFN:Bad\r\n{inner}\r\nEND:VCARD\r\n"

    return _lines(f"contacts {name}", "vcf", whole, _CARD)


def _statement(name: str, bad: str, good: int = 1) -> HostileFile:
    payment = "<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20240102<TRNAMT>-4.50<FITID>g<NAME>good</STMTTRN>"

    def content() -> bytes:
        head = "OFXHEADER:100\r\nDATA:OFXSGML\r\n\r\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS>"
        account = "<CURDEF>EUR<BANKACCTFROM><BANKID>1<ACCTID>12345678<ACCTTYPE>CHECKING"
        listed = "</BANKACCTFROM><BANKTRANLIST>"
        tail = "</BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>"
        return (head + account + listed + payment + bad + tail).encode()

    return HostileFile(f"bank {name}.ofx", content, good)


def _camt(name: str, bad: str | Callable[[], str], good: int = 2) -> HostileFile:
    """A statement in XML: a good entry, the bad one, a good one."""
    entry = (
        '<Ntry><Amt Ccy="EUR">4.50</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>'
        "2024-01-02</Dt></BookgDt><AcctSvcrRef>{}</AcctSvcrRef></Ntry>"
    )

    def content() -> bytes:
        inner = bad if isinstance(bad, str) else bad()
        account = "<Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>EUR</Ccy></Acct>"
        laughs = '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">]>'
        opened = f"<?xml version='1.0'?>{laughs}<Document><BkToCstmrStmt><Stmt>{account}"
        closed = "</Stmt></BkToCstmrStmt></Document>"
        return f"{opened}{entry.format(1)}{inner}{entry.format(2)}{closed}".encode()

    return HostileFile(f"bank {name}.xml", content, good)


def _entry_of(inner: str) -> str:
    booked = "<CdtDbtInd>DBIT</CdtDbtInd><BookgDt><Dt>2024-01-02</Dt></BookgDt>"
    return f'<Ntry><Amt Ccy="EUR">3</Amt>{booked}{inner}</Ntry>'


def _swift(name: str, bad: Callable[[], str], good: int = 2) -> HostileFile:
    """A statement of SWIFT: a good payment, the bad one, a good one."""

    def content() -> bytes:
        head = ":20:A\r\n:25:DE89370400440532013000\r\n:28C:1/1\r\n:60F:C240101EUR1,00\r\n"
        line = ":61:2401020102D4,50NTRFNONREF//{}\r\n:86:good\r\n"
        return f"{head}{line.format(1)}{bad()}\r\n{line.format(2)}-\r\n".encode()

    return HostileFile(f"bank {name}.sta", content, good)


def _quicken(name: str, bad: Callable[[], str], good: int = 2) -> HostileFile:
    """A file of Quicken: a good payment, the bad one, a good one."""

    def content() -> bytes:
        one = "D01/{}/2024\nT-4.50\nPgood\n^\n"
        return f"!Type:Bank\n{one.format(15)}{bad()}\n^\n{one.format(16)}".encode()

    return HostileFile(f"bank {name}.qif", content, good)


def _payment(amount: str, more: str = "") -> str:
    return f"<STMTTRN><DTPOSTED>20240103<TRNAMT>{amount}<FITID>b{more}</STMTTRN>"


def _vault(name: str, bad: str | Callable[[], str]) -> HostileFile:
    """A zip of three notes, the second of them bad."""

    def content() -> bytes:
        inner = bad if isinstance(bad, str) else bad()
        return _zip({"a.md": b"# good\n", "b.md": inner.encode(), "c.md": b"# good too\n"})

    return HostileFile(f"notes {name}.zip", content, 2)


def _bundles(name: str, info: bytes) -> HostileFile:
    """Two notes of Bear, of the first of which a bad file tells."""
    files = {
        "a.textbundle/text.md": b"# good",
        "a.textbundle/info.json": info,
        "b.textbundle/text.md": b"# good too",
    }
    return HostileFile(f"notes {name}.zip", lambda: _zip(files), 2)


def _apple_notes(name: str, listed: bytes) -> HostileFile:
    """Two notes of Apple's, which a bad list tells of."""
    files = {
        "Notes Details.csv": b"Title, Created On, Modified On\n" + listed,
        "Notes/a/a.txt": b"good",
        "Notes/b/b.txt": b"good too",
    }
    return HostileFile(f"notes {name}.zip", lambda: _zip(files), 2)


def _note_pages(name: str, bad: Callable[[], str]) -> HostileFile:
    """Three notes as pages, the second of them bad."""

    def content() -> bytes:
        first, last = (f"<div><h1>{title}</h1></div>".encode() for title in ("good", "good too"))
        page = b"<div><h1>bad</h1></div>" + bad().encode()
        return _zip({"a.html": first, "b.html": page, "c.html": last})

    return HostileFile(f"notes {name}.zip", content, 2)


def _zip(files: dict[str, bytes]) -> bytes:
    """Stored, not packed: a bomb is refused by its proportions."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def _list(name: str, good: object, bad: str | Callable[[], str], file: str) -> HostileFile:
    """A zip with a JSON list: a good element, the bad one, a good one."""

    def content() -> bytes:
        inner = bad if isinstance(bad, str) else bad()
        text = json.dumps(good)
        whole = f"[{text.replace('g0', 'g1')},{inner},{text.replace('g0', 'g2')}]"
        return _zip({file: whole.encode()})

    return HostileFile(f"{name}.zip", content, 2)


def _message(number: str, parts: object) -> dict[str, object]:
    content = {"content_type": "text", "parts": [parts]}
    return {"id": number, "author": {"role": "user"}, "content": content, "create_time": 1.7e9}


def _conversation(number: str, parts: object = "good") -> dict[str, object]:
    node = {"id": number, "message": _message(number, parts), "parent": None}
    return {"conversation_id": number, "current_node": number, "mapping": {number: node}}


def _gpt(name: str, bad: str | Callable[[], str]) -> HostileFile:
    return _list(f"chatgpt {name}", _conversation("g0"), bad, "conversations.json")


def _chain(length: int) -> str:
    """A conversation as one thread, each message under the one before."""
    message = _message("n0", "bad")
    mapping = {
        f"n{n}": {"id": f"n{n}", "message": message, "parent": f"n{n - 1}"} for n in range(length)
    }
    return json.dumps({"conversation_id": "bad", "current_node": "n5", "mapping": mapping})


_CLAUDE = {"uuid": "g0", "name": "good", "chat_messages": [{"uuid": "mg0", "text": "good"}]}


def _claude(name: str, bad: str | Callable[[], str]) -> HostileFile:
    return _list(f"claude {name}", _CLAUDE, bad, "conversations.json")


def _slack(name: str, text: Callable[[], str]) -> HostileFile:
    def content() -> bytes:
        stamps = ("1700000000.000100", "1700000001.000100", "1700000002.000100")
        texts = ("good", text(), "good")
        listed = [
            {"type": "message", "user": "U1", "ts": ts, "text": said}
            for ts, said in zip(stamps, texts, strict=True)
        ]
        return _zip({"general/2023-11-14.json": json.dumps(listed).encode()})

    return HostileFile(f"slack {name}.zip", content, 2)


def _telegram(name: str, text: Callable[[], object]) -> HostileFile:
    def content() -> bytes:
        said = [
            {"id": n, "type": "message", "date_unixtime": "1705176000", "text": t}
            for n, t in enumerate(("good", text(), "good"))
        ]
        chat = {"name": "Chat", "type": "personal_chat", "id": 1, "messages": said}
        return json.dumps(chat).encode()

    return HostileFile(f"telegram {name}.json", content, 3)


def _meta(name: str, content: Callable[[], object]) -> HostileFile:
    def body() -> bytes:
        said = [
            {"sender_name": "Ada", "timestamp_ms": 1705176000000 + n, "content": c}
            for n, c in enumerate(("good", content(), "good"))
        ]
        return json.dumps({"participants": [], "messages": said, "title": "Chat"}).encode()

    return HostileFile(f"meta {name}.json", body, 3)


def _page(name: str, bad: Callable[[], str]) -> HostileFile:
    """A chat of Meta's as a page: a good message, the bad one, a good one, in a chat."""

    def content() -> bytes:
        good = on_page("Ada", "good", "Jan 16, 2024 4:05 pm")
        return _zip({"inbox/chat/message_1.html": page("Chat", good, bad(), good)})

    return HostileFile(f"meta page {name}.zip", content, 3)


def _voice(name: str, bad: Callable[[], str]) -> HostileFile:
    def content() -> bytes:
        good = said("00:00:00", who("+1", "Ada"), "good")
        return chat("Chat", good, bad(), good)

    return HostileFile(f"voice {name}.html", content, 3)


def _phone(name: str, bad: Callable[[], str]) -> HostileFile:
    def content() -> bytes:
        good = '<sms address="1" date="%d" type="1" body="good" />'
        return f"<smses>{good % 1}{bad()}{good % 2}</smses>".encode()

    return HostileFile(f"phone {name}.xml", content, 2)


def _track(name: str, bad: Callable[[], str]) -> HostileFile:
    def content() -> bytes:
        good = '<wpt lat="47" lon="%d"><name>good</name></wpt>'
        return f"<gpx>{good % 1}{bad()}{good % 2}</gpx>".encode()

    return HostileFile(f"track {name}.gpx", content, 2)


def _fit(name: str, bad: Callable[[], bytes], length: int | None = None) -> HostileFile:
    """A file of FIT: a good workout before one that is bad."""

    def content() -> bytes:
        return SWIM + fit_file([fit_kind(4), bad()], length)

    return HostileFile(f"track {name}.fit", content, 3)


def _evernote(name: str, bad: Callable[[], str]) -> HostileFile:
    def content() -> bytes:
        good = "<note><title>%d</title><content>good</content></note>"
        return f"<en-export>{good % 1}{bad()}{good % 2}</en-export>".encode()

    return HostileFile(f"evernote {name}.enex", content, 2)


def _clipping(name: str, bad: Callable[[], str]) -> HostileFile:
    def content() -> bytes:
        good = "Book\n- Highlight Location %d | Added on Friday, 5 January 2024 1:00:00\n\ngood\n"
        entries = [good % 1, bad(), good % 2, ""]
        return "==========\n".join(entries).encode()

    return HostileFile(f"clipping {name}.txt", content, 2)


def _chat(name: str, bad: Callable[[], str]) -> HostileFile:
    def content() -> bytes:
        first, last = "[13/01/24, 21:00:00] Ada: good\n", "[13/01/24, 21:02:00] Ada: good\n"
        return f"{first}[13/01/24, 21:01:00] Ada: {bad()}\n{last}".encode()

    return HostileFile(f"WhatsApp {name}.txt", content, 2)


def _csv(name: str, bad: Callable[[], str], good: int = 2) -> HostileFile:
    def content() -> bytes:
        return f"id,amount,note\n1,2.50,good\n{bad()}\n3,4.50,good\n".encode()

    return HostileFile(f"table {name}.csv", content, good)


def _database(name: str, *statements: str, good: int = 2) -> HostileFile:
    def content() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "made.db")
            with closing(sqlite3.connect(path)) as database:
                for each in (*statements, *_GOOD_TABLE):
                    database.execute(each)
                database.commit()
            return path.read_bytes()

    return HostileFile(f"table {name}.db", content, good)


_GOOD_TABLE = (
    "CREATE TABLE zz (id INTEGER PRIMARY KEY, name TEXT)",
    "INSERT INTO zz VALUES (1, 'good'), (2, 'good')",
)


def _activity(name: str, bad: Callable[[], str]) -> HostileFile:
    cell = (
        '<div class="outer-cell"><div class="header-cell"><p>Search<br></p></div>'
        '<div class="content-cell">Searched for <a href="https://x.example/{}">{}</a><br>'
        "Mar {}, 2024, 1:05:09 PM UTC<br></div></div>"
    )

    def content() -> bytes:
        good = [cell.format(n, "good", n) for n in (1, 2)]
        inner = f'<div class="outer-cell"><div class="content-cell">{bad()}</div></div>'
        page = f"<html><body><div>{good[0]}{inner}{good[1]}</div></body></html>"
        return _zip({"Takeout/My Activity/Search/MyActivity.html": page.encode()})

    return HostileFile(f"google {name}.zip", content, 2)


def _whole(name: str, content: Callable[[], bytes]) -> HostileFile:
    return HostileFile(name, content)


def _packed_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(4):
            archive.writestr(f"{number}.txt", bytes(50 * MB))
    return out.getvalue()


def _many_entries() -> bytes:
    return _zip({f"d/{number}": b"" for number in range(60_000)})


def hostile_files() -> Sequence[HostileFile]:
    """All of them, in the order of their sources."""
    read = [*_MAILS, *_CALENDARS, *_CONTACTS, *_STATEMENTS, *_NOTES, *_CHATS, *_TABLES, *_OTHERS]
    return read + [_mail_with(name, file, content) for name, file, content in ATTACHED]


_MAILS = [
    _mail("200,000 nested div", _HTML, "<div>" * 200_000),
    _mail("200,000 nested b", _HTML, "<b>" * 200_000),
    _mail("100,000 nested tables", _HTML, "<table><tr><td>" * 100_000),
    _mail("misnested formatting", _HTML, "<p><b><i><a>" * 60_000),
    _mail("half a million attributes", _HTML, "<a ", "c=d " * 500_000, ">x"),
    _mail("200,000 open lists", _HTML, "<ul><li>" * 200_000),
    _mail("200,000 nested svg", _HTML, "<svg>" * 200_000),
    _mail("a comment without end", _HTML, "<!--" + "-x" * 2_000_000),
    _mail("200,000 nested select", _HTML, "<select><option>" * 200_000),
    _mail("million entities", _HTML, "&amp;&nosuch" * 500_000),
    _mail("templates in templates", _HTML, "<template>" * 100_000),
    _mail("buttons never closed", _HTML, "<button>" * 100_000, "</p>" * 50_000),
    _mail("encoded words", "Subject: ", "=?utf-8?q?a?= " * 100_000, "\n\nx"),
    _mail("encoded word without end", "Subject: =?utf-8?q?", "=?" * 500_000, "\n\nx"),
    _mail("100,000 recipients", "Cc: ", "a <a@x.example>, " * 100_000, "\n\nx"),
    _mail("open brackets among recipients", "Cc: ", "(" * 500_000, "\n\nx"),
    _mail("open quotes among recipients", "Cc: ", '"a' * 300_001, "\n\nx"),
    _mail("100,000 received", "Received: by x; Mon\n" * 100_000, "\nx"),
    _mail("a long date", "Date: ", "Mon, " * 300_000, "\n\nx"),
    _mail("a date of digits", "Date: ", "1" * 1_000_000, "\n\nx"),
    _mail("angle brackets", "References: ", "<" * 1_000_000, "\n\nx"),
    _mail("labels in quotes", "X-Gmail-Labels: ", '"a,' * 300_000, "\n\nx"),
    _mail(
        "multipart in multipart",
        "".join(
            f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(3_000)
        ),
    ),
    _mail(
        "100,000 parts",
        'Content-Type: multipart/mixed; boundary="b"\n\n',
        "--b\nContent-Type: text/plain\n\nx\n" * 100_000,
    ),
    _mail(
        "20,000 pages",
        'Content-Type: multipart/mixed; boundary="b"\n\n',
        "--b\nContent-Type: text/html\n\n<p>x\n" * 20_000,
    ),
    _mail("message in message", "Content-Type: message/rfc822\n\n" * 3_000, "x"),
    _mail(
        "continued parameters",
        "Content-Type: text/plain;",
        "".join(f"\n name*{n}*=a;" for n in range(50_000)),
        "\n\nx",
    ),
    _mail(
        "soft line breaks",
        "Content-Transfer-Encoding: quoted-printable\nContent-Type: text/plain\n\n",
        "=\n" * 3_000_000,
    ),
    _mail(
        "broken base64",
        "Content-Transfer-Encoding: base64\nContent-Type: image/png\n\n",
        "A=" * 8_000_000,
    ),
    _mail("punycode", "Content-Type: text/plain; charset=punycode\n\n", "a" * 300_000, "-9999999b"),
    _mail("idna", "Content-Type: text/plain; charset=idna\n\n", "xn--a." * 100_000),
    _mail("one line of 60 MB", "X: y\n\n", b"a" * (60 * MB)),
    _mail("100 MB", "X: y\n\n", b"line of words\n" * (8 * MB)),
    _mail("misnamed boundaries", 'Content-Type: multipart/mixed; boundary="x"\n\n', "--" * 900_000),
    _mail("half a million lines of header", "X-Y: z\n" * 500_000, "\nx"),
]
_CALENDARS = [
    _event("30,000 alarms", "BEGIN:VALARM\r\n" * 30_000),
    _event("300,000 alarms closed", "BEGIN:VALARM\r\nEND:VALARM\r\n" * 300_000),
    _event("folded a million times", "DESCRIPTION:" + "\r\n a" * 1_000_000),
    _event("100,000 guests", "ATTENDEE;CN=a:mailto:a@x.example\r\n" * 100_000),
    _event("categories", "CATEGORIES:" + "a," * 500_000),
    _event("extra dates", "RDATE:" + "20240101T100000Z," * 200_000 + "20240101T100000Z"),
    _event(
        "left-out dates", "RRULE:FREQ=DAILY\r\nEXDATE:" + "20240101T100000Z," * 200_000 + "20240101"
    ),
    _event("30 February", "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"),
    _event(
        "every second of every day",
        lambda: (
            "RRULE:FREQ=DAILY;BYHOUR="
            + ",".join(map(str, range(24)))
            + ";BYMINUTE="
            + ",".join(map(str, range(60)))
            + ";BYSECOND="
            + ",".join(map(str, range(60)))
        ),
    ),
    _event("a thousand rules", "RRULE:FREQ=DAILY\r\n" * 1_000),
    _event("every day since the year 1", "DTSTART:00010101T000000Z\r\nRRULE:FREQ=DAILY"),
    _event("the last of all", "RRULE:FREQ=YEARLY;BYSETPOS=-366;BYDAY=MO,TU,WE,TH,FR,SA,SU"),
    _event("events in an event", "BEGIN:VEVENT\r\n" * 100_000),
    _event("components in components", "BEGIN:X\r\n" * 50_000),
    _event("parameters", "X-A;" + "B=c;" * 300_000 + "D=e:f"),
    _event("an endless length", "DURATION:P" + "9" * 100_000 + "D"),
    _lines(
        "calendar a zone of 50,000 changes",
        "ics",
        lambda: (
            "BEGIN:VTIMEZONE\r\nTZID:bad\r\n"
            + "BEGIN:STANDARD\r\nDTSTART:19700101T000000\r\nTZOFFSETFROM:+0100\r\n"
            "TZOFFSETTO:+0200\r\nRRULE:FREQ=YEARLY\r\nEND:STANDARD\r\n"
            * 3_000
            + "END:VTIMEZONE\r\n"
        ),
        _EVENT,
    ),
]
_CONTACTS = [
    _card("soft line breaks", "NOTE;ENCODING=QUOTED-PRINTABLE:" + "=\r\n" * 300_000 + "x", "2.1"),
    _card("a picture of 20 MB", lambda: "PHOTO;ENCODING=b;TYPE=JPEG:" + "A" * (20 * MB)),
    _card(
        "a folded picture of 20 MB",
        lambda: "PHOTO;ENCODING=b;TYPE=JPEG:" + ("A" * 74 + "\r\n ") * (20 * MB // 74),
    ),
    _card("a picture of 200 MB", lambda: "PHOTO;ENCODING=b:" + ("A" * 74 + "\r\n ") * 2_700_000),
    _card("parameters", "TEL;" + "TYPE=a;" * 200_000 + "X=y:1"),
    _card("a name of semicolons", "N:" + ";" * 2_000_000),
    _card("a note of backslashes", "NOTE:" + "\\," * 2_000_000),
    _card("a million groups", "CATEGORIES:" + "a," * 1_000_000),
    _card("100,000 addresses", "EMAIL:a@x.example\r\n" * 100_000),
    _card("groups of groups", "a." * 300_000 + "TEL:1"),
    _card("folded a million times", "NOTE:" + "\r\n a" * 1_000_000),
    _card("cards in cards", "BEGIN:VCARD\r\n" * 100_000),
    _card("quotes", 'TEL;X="' + '"a' * 300_000 + ":1"),
]
_STATEMENTS = [
    _statement("an amount of 100,000 digits", _payment("9" * 100_000)),
    _statement("an amount of a million zeros", _payment("0." + "0" * 1_000_000 + "1")),
    _statement("a large exponent", _payment("1e999999999")),
    _statement("a day of 100,000 digits", _payment("1").replace("20240103", "2" * 100_000)),
    _statement("an open zone", _payment("1").replace("20240103", "20240103[" + "-" * 100_000)),
    _statement("100,000 open elements", "<A>" * 100_000, good=0),
    _statement("parts in parts", "<A>" * 50_000 + "</A>" * 50_000, good=0),
    _statement("brackets", "<" * 3_000_000, good=0),
    _statement("100,000 payments", _payment("1") * 60_000, good=0),
    _camt("entities in entities", _entry_of("<AddtlNtryInf>&c;&c;&c;</AddtlNtryInf>")),
    _camt("100,000 parts in parts", lambda: _entry_of("<a>" * 100_000 + "</a>" * 100_000)),
    _camt("half a million parts", lambda: _entry_of("<a/>" * 500_000)),
    _camt("open comments", lambda: _entry_of("<!--" * 500_000)),
    _camt("open text", lambda: _entry_of("<![CDATA[" * 300_000)),
    _camt("attributes", lambda: _entry_of("<a " + 'b="c" ' * 300_000 + "/>")),
    _camt("an entry without end", lambda: "<Ntry>" + "<x>words</x>" * 5_000_000, good=1),
    _camt(
        "50,000 payments of one entry", lambda: _entry_of("<NtryDtls><TxDtls/></NtryDtls>" * 50_000)
    ),
    _camt("a character of a million digits", lambda: _entry_of("&#" + "9" * 1_000_000 + ";")),
    _swift("a line of 10 MB", lambda: ":61:2401020102D1,00NTRF" + "x" * (10 * MB)),
    _swift("a million lines", lambda: ":61:2401020102D1,00NTRFA\n:86:" + "words\n" * 1_000_000),
    _swift("marks", lambda: ":61:2401020102D1,00NTRFA\n:86:166" + "?20" * 100_000),
    _swift("slashes", lambda: ":61:2401020102D1,00NTRFA\n:86:/NAME/" + "/" * 1_000_000),
    _swift("digits", lambda: ":61:" + "2" * 1_000_000),
    _quicken("a line of 10 MB", lambda: "D01/15/2024\nT1\nM" + "x" * (10 * MB)),
    _quicken("a million parts", lambda: "D01/15/2024\nT1\n" + "SFood\n$1\n" * 1_000_000),
    _quicken("a date of digits", lambda: "D" + "1/" * 500_000 + "\nT1"),
]
_NOTES = [
    _bundles("an info of 100,000 brackets", b'{"a": ' + b"[" * 100_000),
    _bundles("an info of 4 MB", b'{"a": "' + b"x" * 4_000_000 + b'"}'),
    _apple_notes("a list of a million lines", b"a\n" * 1_000_000),
    _apple_notes("a list with an open quote", b'"' + b"x" * 4_000_000),
    _apple_notes("a list of 300,000 commas", b"," * 300_000),
    _note_pages("400,000 divs in each other", lambda: "<div>" * 400_000),
    _note_pages("300,000 open pictures", lambda: '<img src="data:image/png;base64,' * 300_000),
    _vault("a heading and blanks", "# a" + " " * 3_000 + "b"),
    _vault("a heading and a million blanks", "# a" + " " * 1_000_000 + "b"),
    _vault("open links", "](a" * 300_000),
    _vault("open wiki links", "[[" * 500_000),
    _vault("100,000 brackets in front", "---\na: " + "[" * 100_000 + "\n---\ntext"),
    _vault("100,000 braces in front", "---\na: " + "{" * 100_000 + "\n---\ntext"),
    _vault("lists in lists in front", "---\n" + "- " * 100_000 + "a\n---\ntext"),
    _vault(
        "a billion laughs",
        lambda: (
            "---\na0: &a0 [x, x]\n"
            + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
            + "title: *a59\n---\ntext"
        ),
    ),
    _vault("a number of a million digits", "---\ntitle: " + "1" * 1_000_000 + "\n---\ntext"),
    _vault("a number to base 60", "---\ntitle: 1" + ":1" * 200_000 + "\n---\ntext"),
    _vault("front matter of 3 MB", "---\n" + "a: b\n" * 600_000 + "---\ntext"),
    _vault("open code", "`" * 1_000_000),
    _vault("a million tags", "#a " * 1_000_000),
]
_CHATS = [
    _gpt("100,000 lists in lists", "[" * 100_000 + "]" * 100_000),
    _gpt(
        "parts in parts",
        lambda: json.dumps(_conversation("bad", "@")).replace('"@"', "[" * 900 + "]" * 900),
    ),
    _gpt("a thread of 50,000", lambda: _chain(50_000)),
    _gpt("a number of a million digits", '{"conversation_id": ' + "1" * 1_000_000 + "}"),
    _gpt(
        "90 MB of words",
        lambda: json.dumps(_conversation("bad", "@")).replace("@", "word " * (18 * MB)),
    ),
    _claude(
        "lists in lists", '{"uuid": "b", "chat_messages": ' + "[" * 100_000 + "]" * 100_000 + "}"
    ),
    _claude(
        "million blocks",
        lambda: json.dumps(
            {
                "uuid": "b",
                "name": "b",
                "chat_messages": [{"uuid": "m", "content": [{}] * 1_000_000}],
            }
        ),
    ),
    _slack("open mentions", lambda: "<@U" * 500_000),
    _slack("a character of many digits", lambda: f"&#{'9' * 5000};"),
    _slack("ampersands", lambda: "&amp;" * 1_000_000),
    _telegram("a million pieces", lambda: ["a", {"type": "bold", "text": "b"}] * 300_000),
    _meta("escaped bytes", lambda: "\xc3\xa9" * 1_000_000),
    _meta("open titles", lambda: '"title":"' * 500_000),
    _page("open elements", lambda: '<div class="_a6-g">' + "<b>" * 300_000),
    _page("messages in messages", lambda: '<div class="_a6-g">' * 20_000),
    _page("a long date", lambda: on_page("Ada", "bad", "Mar 2, 2024, " * 20_000 + "4:05 pm")),
    _voice("open elements", lambda: '<div class="message">' + "<q>" * 300_000),
    _voice("open numbers", lambda: '<a class="tel" href="tel:1">' * 200_000),
    _phone("halves", lambda: f'<sms address="1" date="9" body="{"&#55357;" * 300_000}" />'),
    _phone("numbers", lambda: f'<mms address="{"1~" * 500_000}" date="9" />'),
    _phone("parts", lambda: '<mms address="1" date="9">' + "<part />" * 100_000 + "</mms>"),
    _track("names", lambda: '<wpt lat="1" lon="1">' + "<a>b</a>" * 500_000 + "</wpt>"),
    _track(
        "a character of many digits",
        lambda: f'<wpt lat="1" lon="1"><name>&#{"9" * 5000};</name></wpt>',
    ),
    _track("points", lambda: "<trk>" + '<trkpt lat="1" lon="1"/>' * 300_000 + "</trk>"),
    _track("open quotes", lambda: '<trk a="' * 200_000),
    _fit("definitions", lambda: fit_message(0x1234) * 100_000),
    _fit("messages of a byte", lambda: fit_message(20, (3, (2, "B"), 0)) + b"\0\xff" * 1_000_000),
    _fit("files in a file", lambda: SETTINGS * 200_000, 0),
    _evernote("tags", lambda: "<note><title>a</title>" + "<tag>b</tag>" * 300_000 + "</note>"),
    _evernote("nested", lambda: "<note>" + "<a>" * 500_000 + "</note>"),
    _evernote(
        "markup",
        lambda: f"<note><title>a</title><content>{'&lt;b' * 500_000}</content></note>",
    ),
    _clipping("parentheses", lambda: "(" * 500_000 + "\n- Note Location 3\n\nx\n"),
    _clipping("blanks in a title", lambda: f"a{' ' * 200_000}b (c\n- Note Location 3\n\nx\n"),
    _clipping("digits", lambda: f"Book\n- Note Location {'9' * 500_000}\n\nx\n"),
    _clipping("bars", lambda: "Book\n- Note " + "|1" * 500_000 + "\n\nx\n"),
    _clipping("blanks", lambda: "Book\n- Note | " + "1 " * 500_000 + "\n\nx\n"),
    _chat("a million lines", lambda: "x\n" * 1_000_000),
    _chat("30 MB of words", lambda: "word\n" * (6 * MB)),
    _chat("files and brackets", lambda: "a.aa (" * 200_000),
    _chat("attached", lambda: "<a: " * 200_000),
]
_TABLES = [
    _csv("an open quote", lambda: '2,"' + "a,b\n" * 3_000_000),
    _csv("quotes", lambda: "2," + '"' * 3_000_001),
    _csv("a number of a million digits", lambda: "2," + "9" * 1_000_000 + ",x"),
    _csv("a cell of 30 MB", lambda: "2,1," + "x" * (30 * MB)),
    _csv("a million cells", lambda: "2," + "," * 1_000_000),
    _csv("empty rows", lambda: ",,\n" * 1_000_000),
    _database(
        "a made column of 400 MB",
        "CREATE TABLE a (id INTEGER PRIMARY KEY, b AS (hex(zeroblob(200000000))))",
        "INSERT INTO a (id) VALUES (1), (2), (3)",
    ),
    _database(
        "a made column of blanks",
        "CREATE TABLE a (id INTEGER PRIMARY KEY, b AS (printf('%300000000c', 'x')))",
        "INSERT INTO a (id) VALUES (1), (2), (3)",
    ),
    _database(
        "slow made columns",
        "CREATE TABLE a (id INTEGER PRIMARY KEY, b AS (length(replace(hex(zeroblob(3000000)),"
        " '0', '00'))))",
        "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n LIMIT 300)"
        " INSERT INTO a (id) SELECT i FROM n",
    ),
    _database("1,900 columns", f"CREATE TABLE a ({', '.join(f'c{n}' for n in range(1900))})"),
    _database(
        "a view without end",
        "CREATE VIEW a AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n)"
        " SELECT * FROM n",
    ),
    _database(
        "a full-text table",
        "CREATE VIRTUAL TABLE a USING fts5(b)",
        "INSERT INTO a VALUES ('text')",
    ),
]
_OTHERS = [
    _activity("200,000 nested div", lambda: "<div>" * 200_000),
    _activity("a date of 100,000 words", lambda: "a<br>" + "Mar 2, 2024, " * 20_000 + "PM CET"),
    _activity("a long line", lambda: "Watched <a>" * 100_000),
    _whole("lists.json", lambda: b"[" * 3_000_000),
    _whole("objects.jsonl", lambda: b'{"a":' * 1_000_000),
    _whole("line of 100 MB.jsonl", lambda: b'{"a": "' + b"x" * (100 * MB) + b'"}\n{"a": "good"}\n'),
    _whole("bomb.zip", _packed_bomb),
    _whole("60,000 names.zip", _many_entries),
    _whole("noise.bin", lambda: bytes(range(256)) * 40_000),
    _whole("zeroes.csv", lambda: bytes(20 * MB)),
]


# Files that come with a mail: their text is read when the mail is stored.
def _mail_with(name: str, filename: str, content: Callable[[], bytes]) -> HostileFile:
    """A mailbox: a good message, one with the file between two good ones, a good message."""

    def whole() -> bytes:
        parts = [("good1.txt", b"good"), (filename, content()), ("good2.txt", b"good")]
        inner = b"".join(
            f'--b\nContent-Type: application/octet-stream; name="{each}"\n'
            "Content-Transfer-Encoding: base64\n\n".encode()
            + base64.encodebytes(body)
            for each, body in parts
        )
        head = b'Subject: bad\nContent-Type: multipart/mixed; boundary="b"\n\n'
        return (
            _letter(1) + _FROM + b"From: bad@x.example\n" + head + inner + b"--b--\n\n" + _letter(2)
        )

    return HostileFile(f"attached {name}.mbox", whole, 5)
