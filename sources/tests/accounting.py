"""How many entries an export holds, counted by the plainest means there are.

The counters share nothing with the readers.
"""

from __future__ import annotations

import csv
import io
import json
import plistlib
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from typing import Any, cast

# What stands beside an entry, such as a file that is missing, is no entry of its own.
BESIDE = frozenset(
    {
        "missing_attachment",
        "unmentioned_file",
        "beyond_bounds",
        "attachment_too_large",
        "bad_address",
        "unknown_rule",
        "agenda_cut",
        "unnamed_chat",
        "unknown_content",
        "unreadable_text",
        "no_value",
        "empty_field",
        "no_file",
        "before_header",
        "no_account_number",
        "ambiguous_dates",
        "no_year",
    }
)


def _lines(pattern: bytes) -> Callable[[bytes], int]:
    return lambda body: len(re.findall(pattern, body, re.MULTILINE | re.IGNORECASE))


def _text(body: bytes) -> str:
    """Text of any charset, so that cells and lines can be counted."""
    marks = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    return body.decode(marks.get(body[:2], "utf-8-sig"), "replace").replace("\x00", "")


def rows_of(body: bytes) -> list[list[str]]:
    """Rows that hold something, the names first; cells are apart by what there is most of."""
    text = _text(body)
    delimiter = max(",;\t|", key=text.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return [row for row in rows if any(cell.strip() for cell in row)]


def _of_table(body: bytes) -> int:
    """Rows of CSV, but for the names; rows of a database; objects of JSON."""
    if body.startswith(b"SQLite"):
        return _in_every_table(body)
    if body.strip()[:1] in (b"{", b"["):
        return _of_json(_text(body))
    return len(rows_of(body)) - 1


def _unlogged(body: bytes) -> bytes:
    """A database as if it kept no log beside it, which one in memory cannot have."""
    return body[:18] + b"\x01\x01" + body[20:]


def _in_every_table(body: bytes) -> int:
    """Rows of all tables, and the views, which are named."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(_unlogged(body))
        listed = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
        found = database.execute(listed).fetchall()
        total = sum(kind == "view" for kind, _ in found)
        for name in (name for kind, name in found if kind == "table"):
            (rows,) = database.execute(f'SELECT count(*) FROM "{name}"').fetchone()  # noqa: S608 (a copy in memory)
            total += rows
        return total


def _of_json(text: str) -> int:
    """Entries of the lists of objects, at the root or at most two objects in; else the objects."""
    values: list[Any] = []
    rest = text.strip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        values.append(value)
        rest = rest[end:].strip()
    if len(values) > 1:
        return len(values)
    if isinstance(values[0], list):
        return len(cast("list[Any]", values[0]))
    outer = cast("dict[str, Any]", values[0])
    inner = [cast("dict[str, Any]", each) for each in outer.values() if isinstance(each, dict)]
    held: list[Any] = [each for holder in (outer, *inner) for each in holder.values()]
    lists = [cast("list[Any]", each) for each in held if isinstance(each, list)]
    listed = sum(len(each) for each in lists if any(isinstance(o, dict) for o in each))
    scalars = [each for each in held if not isinstance(each, dict | list)]
    is_beside = bool(set(map(str, scalars)) - {"FeatureCollection"})
    return listed + is_beside if listed else 1  # what stands beside the lists is one


_IN_STATEMENTS = (
    rb"STMTTRNP?|BUY(?:DEBT|MF|OPT|OTHER|STOCK)|CLOSUREOPT|INCOME|INVEXPENSE|JRNL(?:FUND|SEC)"
    rb"|MARGININTEREST|REINVEST|RETOFCAP|SELL(?:DEBT|MF|OPT|OTHER|STOCK)|SPLIT|TRANSFER"
    rb"|POS(?:MF|STOCK|OPT|OTHER|DEBT)|SECINFO|LEDGERBAL|AVAILBAL|AVAILCASH"
)


def _in_bank(body: bytes) -> int:
    """Payments, trades, holdings and balances of OFX, or one reason why there is none; rows."""
    if b"<OFX" in body.upper() or b"OFXHEADER" in body.upper():
        found = re.findall(rb"(?i)<(?:\w+:)?(?:" + _IN_STATEMENTS + rb")>", body)
        return len(found) or not re.search(rb"(?i)<(?:\w+:)?ACCTID>", body)
    if b"<BkToCstmr" in body:
        details = [len(re.findall(rb"<TxDtls>", each)) for each in body.split(b"<Ntry>")[1:]]
        return sum(max(1, each) for each in details) + body.count(b"<Bal>")
    if body.startswith(b":20:"):
        return len(re.findall(rb"^:(?:61|60F|62[FM]|64|65):", body, re.MULTILINE))
    if body.startswith(b"!"):
        entries = body[body.index(b"!Type") :].split(b"\n^")
        return sum(max(each.count(b"\n$"), b"\nD" in each) for each in entries)
    return len(rows_of(body)) - 1


def _in_mail(body: bytes) -> int:
    """Separators after an empty line, or one mail."""
    if not body.startswith(b"From "):
        return 1
    return len(re.findall(rb"(?:\A|\n\r?\n)From .*\n(?=[!-9;-~]{1,80}:|>From )", body))


# A date and a time in any order, in brackets or before a dash or colon.
_CHAT_DATE = r"(?:\d{1,4}\s?[./-]\s?\d{1,2}\s?[./-]\s?\d{1,4}\.?|\d{1,2} \w{3,9} \d{4})"
_CHAT_TIME = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\W?[ap]\.?\s?m\.?)?"
_CHAT_LINE = re.compile(
    rf"^[\u200e\u202a]*\[?(?:{_CHAT_DATE},?\s{_CHAT_TIME}|{_CHAT_TIME},?\s{_CHAT_DATE})(?:\]|\s-|:)\s",
    re.MULTILINE | re.IGNORECASE,
)


def _in_whatsapp(body: bytes) -> int:
    return len(_CHAT_LINE.findall(_text(body)))


def _in_slack(body: bytes) -> int:
    return len(json.loads(body))


def _objects(*lists: str) -> Callable[[bytes], int]:
    """The objects in lists of these names of a file of JSON."""
    return lambda body: sum(len(each) for each in _named(json.loads(body), lists))


def _named(value: Any, names: Iterable[str]) -> list[Any]:
    """The lists of these names, wherever they stand."""
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        return [found for each in listed for found in _named(each, names)]
    if not isinstance(value, dict):
        return []
    held = cast("dict[str, Any]", value)
    own: list[Any] = [e for name, e in held.items() if name in names and isinstance(e, list)]
    return own + [found for each in held.values() for found in _named(each, names)]


def _in_telegram(body: bytes) -> int:
    """Messages, and the parts of an account that are no chats."""
    parts = json.loads(body).keys() if b'"about"' in body else set[str]()
    return _objects("messages")(body) + len(parts - {"about", "chats", "left_chats"})


def _in_database(*statements: str) -> Callable[[bytes], int]:
    """What statements count in a database; one whose tables it lacks counts nothing."""

    def count(body: bytes) -> int:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(_unlogged(body))
            total = 0
            for statement in statements:
                with suppress(sqlite3.OperationalError):
                    total += database.execute(statement).fetchone()[0]
            return total

    return count


_BROWSER_ROWS = _in_database(
    "SELECT count(*) FROM visits",
    "SELECT count(*) FROM keyword_search_terms",
    "SELECT count(*) FROM downloads",
    "SELECT count(*) FROM moz_historyvisits",
    "SELECT count(*) FROM history_visits",
    "SELECT count(*) FROM moz_places_metadata_search_queries",
    "SELECT count(*) FROM searchhistory",
    "SELECT count(*) FROM bookmarks WHERE type = 1",
    "SELECT count(*) FROM moz_bookmarks WHERE type = 1 AND parent NOT IN (SELECT id FROM"
    " moz_bookmarks WHERE parent IN (SELECT id FROM moz_bookmarks WHERE guid = 'tags________'))",
)


def _in_browser(body: bytes) -> int:
    if body.startswith(b"SQLite"):
        return _BROWSER_ROWS(body)
    if body.startswith(b"bplist"):
        return str(plistlib.loads(body)).count("'WebBookmarkTypeLeaf'")
    return len(re.findall(rb'<DT><A |"type": "url"', body))


def _in_health(body: bytes) -> int:
    """Elements that begin, but for those inside others; a file of another kind is one entry."""
    if b"<HealthData" not in body and b"<gpx" not in body:
        return 1
    outside = re.sub(rb"(?s)(<Correlation )[^>]*>.*?</Correlation>", rb"\1", body)
    names = rb"<(?:Record|Correlation|Workout|ActivitySummary|Me|ClinicalRecord|trkpt|Location) "
    return len(re.findall(names, outside))


def _in_calendar(body: bytes) -> int:
    """Entries, and of times shown as busy each."""
    unfolded = re.sub(rb"\r*\n[ \t]", b"", body)
    shown = re.findall(rb"(?ims)^BEGIN:VFREEBUSY(.*?)^END:VFREEBUSY", unfolded)
    lines = [re.findall(rb"(?im)^FREEBUSY[;:].*", each) for each in shown]
    busy = sum(sum(1 + line.count(b",") for line in each) or 1 for each in lines)
    known = len(re.findall(rb"(?im)^BEGIN:V(?:EVENT|TODO|JOURNAL)", body))
    return known + busy + _unknown_components(unfolded)


def _unknown_components(body: bytes) -> int:
    """Entries of a calendar that are none of those that it is known for."""
    stack: list[bytes] = []
    unknown = 0
    for mark, kind in re.findall(rb"(?im)^(BEGIN|END):(?!VCALENDAR)(\S+)", body):
        if mark.upper() == b"END":
            stack = stack[: stack.index(kind)] if kind in stack else stack
            continue
        unknown += not stack and not re.match(
            rb"(?i)V(?:EVENT|TODO|JOURNAL|FREEBUSY|TIMEZONE)$", kind
        )
        stack.append(kind)
    return unknown


def _in_chatgpt(body: bytes) -> int:
    """Conversations, the messages in them that say something, and the files of those.

    Of a file beside them each object of its list, or the one object that it is.
    """
    total, whole = 0, json.loads(body)
    if b"mapping" not in body:
        return len(whole if body.startswith(b"[") else whole.get("chats", [whole]))
    for conversation in whole:
        nodes = conversation["mapping"].values()
        messages = [node["message"] for node in nodes if node["message"]]
        files = {
            found
            for message in messages
            for found in re.findall(r"file[-_](?!service)\w+", json.dumps(message))
        }
        total += 1 + sum(any(m["content"].get("parts", ())) for m in messages) + len(files)
    return total


def _in_claude(body: bytes) -> int:
    """Conversations, messages and files; projects and documents; memories, each of its own."""
    whole: Any = json.loads(body)
    lists = ("chat_messages", "messages", "attachments", "files", "docs", "memory_files")
    inside = sum(len(each) for each in _named(whole, lists))
    memories = [len(each["project_memories"]) for each in whole if "project_memories" in each]
    return inside + (len(whole) if body.startswith(b"[") else 1) + sum(memories)


def _in_google(body: bytes) -> int:
    """Cells of a page; rows; a note, an album, each picture; entries of lists, points of a path."""
    if body.startswith(b"\xff\xd8"):
        return 0  # it is told of by a file of JSON
    if body.startswith(b"<html"):
        return body.count(b'<div class="outer-cell') or int(b"Starter" in body)
    if not body.startswith((b"{", b"[")):
        return len(rows_of(body)) - 1
    whole: Any = json.loads(body)
    if "title" in whole:
        return 1 + len(whole.get("attachments", ()))
    if "items" in whole:
        return len(whole["items"]) + sum(len(each["items"]) for each in whole["items"])
    names = ("Browser History", "locations", "timelineObjects", "semanticSegments", "rawSignals")
    names += ("timelineEdits",)
    lists: list[Any] = [whole] if body.startswith(b"[") else _named(whole, names)
    inside = _named(whole, ("points", "childVisits", "frequentPlaces"))
    own = sum(len(entry.get("timelinePath", "1")) for each in lists for entry in each)
    return own + sum(map(len, inside))


# For each source: the files that hold entries, how to count them, and the streams they become
# (none means all).
COUNTED: dict[str, tuple[str, Callable[[bytes], int], frozenset[str]]] = {
    "bank": (
        r".*",
        _in_bank,
        frozenset({"transactions", "trades", "holdings", "securities", "balances"}),
    ),
    "apple_health": (
        r".*",
        _in_health,
        frozenset({"measurements", "sleep", "workouts", "activity_days", "route_points"}),
    ),
    "browser": (
        r".*",
        _in_browser,
        frozenset({"visits", "bookmarks", "downloads", "searches"}),
    ),
    "calendar": (
        r".*\.(?:ics|txt)",
        _in_calendar,
        frozenset({"events", "tasks", "journal", "busy_times"}),
    ),
    "chatgpt": (
        r"(?:.*/)?(?:[\w-]*conversations[\w-]*|message_feedback|group_chats|textdocs/[\w-]+)\.json",
        _in_chatgpt,
        frozenset(
            {
                *("conversations", "messages", "attachments", "documents"),
                *("shared_links", "feedback", "group_chats"),
            }
        ),
    ),
    "claude": (
        r"(?!users).*\.json",
        _in_claude,
        frozenset(
            {"conversations", "messages", "attachments", "projects", "documents", "memories"}
        ),
    ),
    "google": (
        r".*",
        _in_google,
        frozenset(
            {
                "youtube_watches",
                "youtube_searches",
                "activity",
                "browser_visits",
                "location_points",
                "location_visits",
                "location_trips",
                "frequent_places",
                "youtube_subscriptions",
                "youtube_playlists",
                "youtube_playlist_videos",
                "youtube_comments",
                "notes",
                "note_files",
                "task_lists",
                "tasks",
                "photos",
                "albums",
            }
        ),
    ),
    "contacts": (r".*\.vcf", _lines(rb"^BEGIN:VCARD"), frozenset({"contacts"})),
    "imessage": (
        r".*\.db",
        _in_database(
            "SELECT count(*) FROM chat",
            "SELECT count(*) FROM message",
            "SELECT count(*) FROM attachment",
        ),
        frozenset({"chats", "messages", "reactions", "files"}),
    ),
    "mail": (r".*", _in_mail, frozenset({"messages"})),
    "notes": (r".*\.(?:md|markdown|mdown)", lambda _: 1, frozenset({"notes"})),
    "slack": (
        r"(?!.*(?:users|channels|dms|groups|mpims|logs|canvases)\.json).*\.json",
        _in_slack,
        frozenset({"messages"}),
    ),
    "table": (r".*", _of_table, frozenset()),
    "whatsapp": (
        r".*\.txt",
        _in_whatsapp,
        frozenset({"messages"}),
    ),
    "telegram": (r".*\.json", _in_telegram, frozenset({"messages"})),
    "phone": (
        r".*\.xml",
        _lines(rb"<(?:sms|mms|call)\s"),
        frozenset({"messages", "calls"}),
    ),
    "googlevoice": (
        r".*\.html",
        lambda body: body.count(b'class="message"') or 1,  # else a call, or nothing
        frozenset({"messages", "calls"}),
    ),
    "tracks": (
        r".*\.(?:gpx|tcx|kml|fit)",
        _lines(rb"<(?:trk|rte|wpt|Activity|Course|Placemark)[\s>]|\.FIT"),
        frozenset({"workouts", "routes", "places"}),
    ),
    "evernote": (r".*\.enex", _lines(rb"<note[\s>]"), frozenset({"notes"})),
    "kindle": (r".*\.txt", _lines(rb"^={10}"), frozenset({"highlights"})),
    "meta": (
        r".*\.(?:json|html)",
        lambda body: body.count(b"_a6-g uiBox") or _objects("messages")(body),
        frozenset({"messages"}),
    ),
}
