"""`python -m bench.fed_downloads [--only N]`: exports that fall into a folder while it is fed.

Fifty exports, public sample files of libraries and small exports in the shapes of platforms, as
zips and as single files, fall into a folder that `pdpp serve` watches, as a process: half of them
whole, half as downloads come, in pieces under their own name, or as `.part` or `.crdownload` and
then renamed.  Two come twice, under the name of a copy, and six are nothing that can be imported.
Where nothing tells whose a file is, the owner does what `pdpp feed check` says.

While it goes on and at the end is asked:

  half     is of each export all in the records, or nothing?
  end      are all records of each export there, and nothing else?
  account  are the exports of one person in one account, and no others with them?
  counted  are there as many mails, cards, rows and payments as were written into the files?
  refused  is what cannot be imported named, with a next step, and nothing else?

What an export holds is read here from the whole file, by the reader, once.  It ends with 1 where
anything is wrong.
"""

from __future__ import annotations

import argparse
import csv
import io
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from bench import samples
from bench.fed_terminal import FedTerminal
from bench.site import Site
from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.common.errors import BadRecord, ExportError
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess, Wanted
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_zip

FEED = "downloads"
LOOK_SECONDS, SETTLING_SECONDS, SPREAD_SECONDS = 5.0, 240.0, 90.0
PIECES = 6
WAYS = ("whole", "slow", "whole", "part", "whole", "crdownload")
REFUSED = "-"
"""Whose a file is that nobody can import."""
Key = tuple[str, str, str]
"""Source, stream and key of a record."""


@dataclass(frozen=True, slots=True)
class Export:
    """A file that falls in.

    Shapes: `whose` tells the accounts apart; `counted` are how many records of a stream there have
        to be, by a count of the file that knows nothing of readers.
    """

    name: str
    content: bytes
    whose: str
    counted: tuple[str, int] | None = None


def exports() -> list[Export]:
    """All fifty."""
    found = [*_public(), *_shaped(), *_refused()]
    copies = [each for each in found if each.name in ("checking.ofx", "kindle.zip")]
    found += [Export(_copy_of(each.name), each.content, each.whose, None) for each in copies]
    return found


def _public() -> list[Export]:
    """Of packages: bank statements, calendars, cards, chats, mails, notes, chats with Claude."""
    statements = samples.statements().path
    banks = ("checking", "anzcc", "suncorp", "bank_medium", "td_ameritrade")
    found = [
        Export(f"{each}.ofx", (statements / f"{each}.ofx").read_bytes(), f"bank of {each}")
        for each in banks
    ]
    icalendar, _, vobject, _, khal = (each.path for each in samples.calendars())
    calendars = [
        *(
            icalendar / f"{e}.ics"
            for e in ("example", "alarm_google_future", "issue_1231_recurrence")
        ),
        *(vobject / f"{e}.ics" for e in ("recurrence", "utf8_test", "radicale-0816")),
        *(khal / f"{e}.ics" for e in ("event_dt_simple", "event_d_rr", "event_dt_long")),
    ]
    found += [Export(each.name, each.read_bytes(), "calendar") for each in calendars]
    cards = samples.address_books().path / "vcards"
    for name in ("contact1", "contact2", "joe", "nickname"):
        content = (cards / f"{name}.vcf").read_bytes()
        found.append(Export(f"{name}.vcf", content, "contacts"))
    chats = samples.chats().path
    for name in ("lorem", "pokemon"):
        chat = {"_chat.txt": (chats / f"{name}.txt").read_bytes()}
        found.append(Export(f"WhatsApp Chat - {name}.zip", _zip(chat), "whatsapp"))
    found.append(Export("claude.zip", _zip(_files(samples.claude_export().path)), "claude"))
    found.append(Export("notes.zip", _zip(_files(samples.notes().path)), "notes"))
    found.append(Export("telegram.zip", _zip(_files(samples.telegram_export().path)), "telegram"))
    mails = samples.mailbox().path.read_bytes().split(b"\nFrom ")
    for number in range(3):
        part = mails[number * 120 : number * 120 + 120]
        box = b"".join(b"From " + each.removeprefix(b"From ") + b"\n\n" for each in part)
        found.append(Export(f"lists-{number}.mbox", box, "mail", ("messages", len(part))))
    return found


def _shaped() -> list[Export]:
    """As platforms write them; the specimens of the readers, and generated tables and cards."""
    names = ("chatgpt", "slack", "apple_health", "google", "googlevoice", "meta", "phone")
    names += ("tracks", "kindle", "evernote", "imessage", "browser")
    found = [Export(f"{each}.zip", _zip(SPECIMENS[each]), each) for each in names]
    for year in (2023, 2024):
        rows = io.StringIO()
        writer = csv.writer(rows)
        writer.writerow(("id", "day", "what", "price"))
        writer.writerows(
            (f"{year}-{n}", f"{year}-03-{n % 28 + 1:02}", f"bread {n}", n) for n in range(300)
        )
        found.append(
            Export(f"shopping {year}.csv", rows.getvalue().encode(), "shopping", ("shopping", 300))
        )
    cards = "".join(
        f"BEGIN:VCARD\r\nVERSION:3.0\r\nUID:{n}@example.org\r\nFN:Person {n}\r\nEND:VCARD\r\n"
        for n in range(200)
    )
    found.append(Export("All contacts.vcf", cards.encode(), "contacts", ("contacts", 200)))
    payments = "".join(
        f"<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>202401{n % 28 + 1:02}<TRNAMT>-{n}.10<FITID>{n}"
        f"<NAME>Shop {n}</STMTTRN>\n"
        for n in range(1, 251)
    )
    statement = (
        "OFXHEADER:100\nDATA:OFXSGML\n\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>EUR"
        "<BANKACCTFROM><BANKID>1<ACCTID>DE55<ACCTTYPE>CHECKING</BANKACCTFROM><BANKTRANLIST>"
        f"{payments}</BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>\n"
    )
    found.append(Export("statement.qfx", statement.encode(), "bank of us", ("transactions", 250)))
    return found


def _refused() -> list[Export]:
    """A picture, a program, a cut and an empty archive, an archive of neither, a damaged book."""
    whole = _zip(SPECIMENS["chatgpt"])
    return [
        Export("photo.jpg", b"\xff\xd8\xff\xe0" + random.Random(1).randbytes(9_000), REFUSED),
        Export("setup.exe", b"MZ" + random.Random(2).randbytes(9_000), REFUSED),
        Export("cut.zip", whole[: len(whole) // 2], REFUSED),
        Export("empty.zip", _zip({}), REFUSED),
        Export("others.zip", _zip({"a.bin": bytes(range(256))}), REFUSED),
        Export("noise.mbox", random.Random(3).randbytes(9_000), REFUSED),
    ]


def _zip(files: Files) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        return as_zip(files, Path(name) / "a.zip").read_bytes()


def _files(folder: Path) -> Files:
    paths = sorted(each for each in folder.rglob("*") if each.is_file())
    return {each.relative_to(folder.parent).as_posix(): each.read_bytes() for each in paths}


def _copy_of(name: str) -> str:
    path = Path(name)
    return f"{path.stem} (1){path.suffix}"


def read_whole(found: Sequence[Export], folder: Path) -> dict[str, set[Key]]:
    """The records of each export, by its name; nothing of one that is refused."""
    folder.mkdir()
    keys: dict[str, set[Key]] = {}
    with ReaderProcess(CostlyPlaces(folder / "costly.json")) as reader:
        for each in found:
            path = folder / each.name
            path.write_bytes(each.content)
            keys[each.name] = set()
            try:
                for reading in reader.look(path, Wanted(zone="UTC")).readings:
                    keys[each.name] |= {
                        (reading.connector_key, item.stream, str(item.data["id"]))
                        for item in reading.items()
                        if isinstance(item, SourceRecord)
                    }
            except (ExportError, BadRecord):
                continue
    return keys


def falls(export: Export, folder: Path, way: str, pause: float) -> None:
    """Write an export as a program of its owner does."""
    path = folder / export.name
    if way == "whole":
        beside = folder.parent / export.name
        beside.write_bytes(export.content)
        beside.replace(path)
        return
    begun = path if way == "slow" else path.with_name(f"{path.name}.{way}")
    step = len(export.content) // PIECES + 1
    with begun.open("wb", buffering=0) as out:
        for begin in range(0, len(export.content), step):
            out.write(export.content[begin : begin + step])
            time.sleep(pause)
    if begun != path:
        begun.replace(path)


@dataclass
class Records:
    """What the server holds, by account."""

    by_account: dict[str, set[Key]]

    @classmethod
    def of(cls, lines: Sequence[Mapping[str, Any]], accounts: Mapping[str, str]) -> Records:
        """Of an export; `accounts` are the sources of accounts, by id."""
        found = defaultdict[str, set[Key]](set)
        for line in lines:
            account = str(line["connection_id"])
            found[account].add((accounts[account], line["stream"], line["key"]))
        return cls(dict(found))

    @property
    def all(self) -> set[Key]:
        """Of all accounts."""
        return set[Key]().union(*self.by_account.values())


@dataclass(frozen=True, slots=True)
class Downloads:
    """The folder, what falls into it, and what has to be in the records then."""

    folder: Path
    exports: Sequence[Export]
    keys: Mapping[str, set[Key]]
    terminal: FedTerminal

    def records(self) -> Records:
        """What is held now; accounts are asked for last, so that those of all records are there."""
        lines = self.terminal.lines()
        accounts = {
            each["connection_id"]: each["connector_key"]
            for each in self.terminal.pdpp("connection", "list")
        }
        return Records.of(lines, accounts)

    def half(self, records: Records) -> list[str]:
        """Exports of which the records hold some of what no other export holds, and not all."""
        held, often = records.all, Counter(key for keys in self.keys.values() for key in keys)
        found: list[str] = []
        for name, keys in self.keys.items():
            own = {key for key in keys if often[key] == 1}
            if own & held and own - held:
                found.append(name)
        return found

    def beside(self, records: Records) -> list[str]:
        """Persons whose exports are in several accounts, or in one with those of another."""
        wanted = defaultdict[str, set[Key]](set)
        for each in self.exports:
            wanted[each.whose] |= self.keys[each.name]
        held = [keys for keys in records.by_account.values() if keys]
        whole = [keys for keys in wanted.values() if keys]
        return [who for who, keys in wanted.items() if keys and keys not in held] + [
            next(iter(keys))[0] for keys in held if keys not in whole
        ]

    def choose(self, rejected: Sequence[str]) -> int:
        """Do for files that wait for their owner what the feed says; how many imports that took."""
        by_owner = defaultdict[str, list[Path]](list)
        for name in rejected:
            by_owner[self._whose(name)].append(self.folder / name)
        for who, paths in by_owner.items():
            account = self._account_of(who) or who
            self.terminal.pdpp("import", "--connection", account, *map(str, paths))
        return len(by_owner)

    def _whose(self, name: str) -> str:
        return next(each.whose for each in self.exports if each.name == name)

    def _account_of(self, who: str) -> str | None:
        """The account in which exports of somebody are already."""
        own = {key for each in self.exports if each.whose == who for key in self.keys[each.name]}
        held = self.records().by_account
        return next((account for account, keys in held.items() if keys & own), None)


def fed_downloads(folder: Path, found: Sequence[Export], spread_seconds: float) -> int:
    """Have them fall, feed and compare; how many faults."""
    keys = read_whole(found, folder / "whole")
    downloads = Downloads(folder / "Downloads", found, keys, FedTerminal(Site(folder / "site")))
    downloads.folder.mkdir()
    terminal, draw, faults = downloads.terminal, random.Random(35), list[str]()
    terminal.pdpp("feed", "add", str(downloads.folder), "--name", FEED, "--every", "30s")
    order = list(found)
    draw.shuffle(order)
    falling = list(zip(order, cycle(WAYS), strict=False))
    with terminal.site.serving():
        threads = list[threading.Thread]()
        for export, way in falling:
            pause = draw.uniform(0.3, 1.5)
            threads.append(
                _after(draw.random() * spread_seconds, falls, export, downloads.folder, way, pause)
            )
        looks = 0
        while any(each.is_alive() for each in threads):
            time.sleep(LOOK_SECONDS)
            faults += [f"half: {name}" for name in downloads.half(downloads.records())]
            looks += 1
        fallen = time.monotonic()
        waiting = _settled(terminal, len(found), fallen)
        asked = downloads.choose(waiting)
        terminal.pdpp("feed", "run", FEED)
        _settled(terminal, len(found), fallen)
        seconds = time.monotonic() - fallen
        checked, records = terminal.pdpp("feed", "check", FEED), downloads.records()
        (feed,) = terminal.pdpp("feed", "list")
    faults += [f"half: {name}" for name in downloads.half(records)]
    faults += _end(downloads, records)
    faults += _refusals(downloads, checked["differences"], terminal)
    faults += [f"feed: {feed['code']}"] if feed["code"] else []
    slow = sum(way != "whole" for _, way in falling)
    print(f"{len(found)} exports of {len({each.whose for each in found})} owners, {slow} in pieces")
    print(f"{looks} looks meanwhile; at rest {seconds:.0f} s after the last byte")
    print(f"{len(waiting)} waited for their owner, who answered in {asked} imports")
    print(
        f"{len(records.all)} records in {len(records.by_account)} accounts;"
        f" {len(checked['differences'])} files refused: {_codes(checked['differences'])}"
    )
    print(f"faults: {len(faults)} {faults}")
    return len(faults)


def _after(seconds: float, act: Callable[..., None], *arguments: object) -> threading.Thread:
    timer = threading.Timer(seconds, act, arguments)
    timer.start()
    return timer


def _settled(terminal: FedTerminal, files: int, since: float) -> list[str]:
    """Wait until every file was imported or refused; those that wait for their owner."""
    while True:
        (feed,) = terminal.pdpp("feed", "list")
        ledger = terminal.pdpp("feed", "check", FEED)
        unsettled = [
            e for e in ledger["differences"] if e["reason"] in ("new", "changed", "settling")
        ]
        is_idle = feed["state"] == "waiting" and ledger["items"] == files
        if (is_idle and not unsettled) or time.monotonic() > since + SETTLING_SECONDS:
            return [
                each["item"]
                for each in ledger["differences"]
                if each["code"] == "ambiguous_connection"
            ]
        time.sleep(2)


def _end(downloads: Downloads, records: Records) -> list[str]:
    wanted = set[Key]().union(*downloads.keys.values())
    faults = [f"missing: {key}" for key in wanted - records.all]
    faults += [f"of nothing: {key}" for key in records.all - wanted]
    faults += [f"account: {who}" for who in downloads.beside(records)]
    for export in downloads.exports:
        if export.counted:
            stream, count = export.counted
            there = sum(key[1] == stream for key in downloads.keys[export.name] & records.all)
            faults += [f"counted: {export.name} {there} of {count}"] if there != count else []
    return faults


def _refusals(
    downloads: Downloads, differences: Sequence[Mapping[str, Any]], terminal: FedTerminal
) -> list[str]:
    """What is refused and was not to be, or the reverse; and what is named without a next step."""
    refused = {each["item"] for each in differences if each["reason"] == "rejected"}
    wanted = {each.name for each in downloads.exports if each.whose == REFUSED}
    faults = [f"refusal: {name}" for name in refused ^ wanted]
    faults += [f"check: {each}" for each in differences if each["reason"] != "rejected"]
    command = terminal.site.command("pdpp", "feed", "check", FEED)
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    for each in differences:
        lines = [line for line in said.splitlines() if str(each["item"]) in line]
        is_told = any(len(line.partition("). ")[2].split()) > 3 for line in lines)
        faults += [] if is_told else [f"no next step: {each['item']}"]
    return faults


def _codes(differences: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return dict(Counter(str(each["code"]) for each in differences))


def main() -> int:
    """1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", type=int, help="so many of the exports, drawn by a seed")
    options = parser.parse_args()
    found = exports()
    spread = SPREAD_SECONDS
    if options.only:
        found, spread = random.Random(35).sample(found, options.only), 5.0
    with tempfile.TemporaryDirectory(prefix="bench-downloads-") as name:
        return 1 if fed_downloads(Path(name), found, spread) else 0


if __name__ == "__main__":
    sys.exit(main())
