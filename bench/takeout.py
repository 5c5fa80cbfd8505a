"""A generated Google Takeout: many parts, one big mailbox, photos, activity and places inside.

Rule: the same size gives the same bytes on every machine; nothing here is anybody's data. Of the
bytes a bit less than half is mail, most of the rest pictures and films that do not pack.
"""

from __future__ import annotations

import base64
import json
import random
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from pathlib import Path

from bench.archive import Words

START = datetime(2012, 1, 1, tzinfo=UTC)
PART_BYTES = 1_000_000_000
STAMP = (2026, 1, 1, 12, 0, 0)
ATTACHMENT_BYTES = 250_000
PHOTO_BYTES = 400_000
FILM_BYTES = 60_000_000  # beyond what is kept of a file
PER_GB = {"messages": 12_000, "photos": 800, "films": 4, "places": 100_000, "watched": 30_000}
NOTES = 200


def generated_places(places: int) -> Iterator[bytes]:
    """A `Records.json` of so many places, half of them with what else the phone noted."""
    chance = random.Random(7)
    north, east = 457_000_000, 91_000_000
    yield b'{"locations": ['
    for number in range(places):
        north, east = (each + chance.randrange(-9_000, 9_001) for each in (north, east))
        entry: dict[str, object] = {
            "latitudeE7": north,
            "longitudeE7": east,
            "accuracy": chance.randrange(3, 60),
            "source": chance.choice(("WIFI", "GPS", "CELL")),
            "deviceTag": 1_234_567,
            "timestamp": f"{START + timedelta(seconds=number * 90):%Y-%m-%dT%H:%M:%S}.123Z",
        }
        if number % 2:
            doing = {"type": "STILL", "confidence": chance.randrange(100)}
            entry["activity"] = [{"activity": [doing], "timestamp": entry["timestamp"]}]
        yield b",\n" * bool(number) + json.dumps(entry).encode()
    yield b"]}"


def write_takeout(folder: Path, gigabytes: float) -> list[Path]:
    """The parts of a Takeout of about that size, as Google names them."""
    counts = {what: max(3, int(each * gigabytes)) for what, each in PER_GB.items()}
    words, chance = Words(7), random.Random(7)
    folder.mkdir(parents=True)
    with _Parts(folder) as parts:
        parts.add("Mail/All mail Including Spam and Trash.mbox", _mailbox(counts, words, chance))
        parts.add("Location History (Timeline)/Records.json", generated_places(counts["places"]))
        watched = _watched(counts["watched"], words)
        parts.add("YouTube and YouTube Music/history/watch-history.json", watched)
        for number in range(NOTES):
            parts.add(f"Keep/Note {number}.json", iter([_note(number, words)]))
        for number in range(counts["photos"] + counts["films"]):
            is_film = number >= counts["photos"]
            year, moment = 2012 + number % 12, START + timedelta(hours=number * 7)
            name = f"{'VID' if is_film else 'IMG'}_{number:06}.{'mp4' if is_film else 'jpg'}"
            path = f"Google Photos/Photos from {year}/{name}"
            parts.add(f"{path}.supplemental-metadata.json", iter([_sidecar(name, moment, number)]))
            size = FILM_BYTES if is_film else PHOTO_BYTES
            parts.add(path, iter([chance.randbytes(size)]), packs=False)
    return parts.paths


class _Parts:
    """Archives, each begun where the one before has become long enough."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened = ExitStack()
        self.paths: list[Path] = []

    def __enter__(self) -> _Parts:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def add(self, name: str, content: Iterator[bytes], *, packs: bool = True) -> None:
        """A file; a long one makes its part as long."""
        if self.paths[-1].stat().st_size > PART_BYTES:
            self._begin()
        info = zipfile.ZipInfo(f"Takeout/{name}", STAMP)
        info.compress_type = zipfile.ZIP_DEFLATED if packs else zipfile.ZIP_STORED
        with self._part.open(info, "w", force_zip64=True) as file:
            for chunk in content:
                file.write(chunk)

    def _begin(self) -> None:
        self._opened.close()
        path = self._folder / f"takeout-20260101T120000Z-{len(self.paths) + 1:03}.zip"
        self._part = self._opened.enter_context(zipfile.ZipFile(path, "w", compresslevel=1))
        self.paths.append(path)


def _mailbox(counts: dict[str, int], words: Words, chance: random.Random) -> Iterator[bytes]:
    """Mails, of which one in ten has a file of random bytes."""
    for number in range(counts["messages"]):
        moment = START + timedelta(hours=number)
        body = "\n".join(words.text(12) for _ in range(6))
        kind = "Content-Type: text/plain; charset=utf-8\n"
        if number % 10 == 0:
            kind = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n'
            file = base64.encodebytes(chance.randbytes(ATTACHMENT_BYTES)).decode()
            body = (
                f"--b\nContent-Type: text/plain\n\n{body}\n--b\nContent-Type: image/jpeg\n"
                "Content-Transfer-Encoding: base64\n"
                f'Content-Disposition: attachment; filename="n{number}.jpg"\n\n{file}\n--b--'
            )
        yield (
            f"From {number}@xxx {moment:%a %b %d %H:%M:%S} +0000 {moment:%Y}\n"
            f"X-GM-THRID: {number // 3}\nX-Gmail-Labels: Inbox\n"
            f"Message-ID: <{number}@bench.example>\n"
            f"Date: {moment:%a, %d %b %Y %H:%M:%S} +0000\n"
            f"From: Person {number % 400} <p{number % 400}@bench.example>\n"
            f"To: owner@bench.example\nSubject: {words.text(5)}\n{kind}\n{body}\n\n"
        ).encode()


def _watched(videos: int, words: Words) -> Iterator[bytes]:
    yield b"["
    for number in islice(count(), videos):
        moment = START + timedelta(hours=number)
        entry = {
            "header": "YouTube",
            "title": f"Watched {words.text(6)}",
            "titleUrl": f"https://www.youtube.com/watch?v=v{number:010}",
            "subtitles": [{"name": f"Channel {number % 300}", "url": "https://www.youtube.com/c"}],
            "time": f"{moment:%Y-%m-%dT%H:%M:%S}.000Z",
            "products": ["YouTube"],
        }
        yield b"," * bool(number) + json.dumps(entry).encode()
    yield b"]"


def _note(number: int, words: Words) -> bytes:
    made = int((START + timedelta(days=number)).timestamp() * 1_000_000)
    note = {
        "color": "DEFAULT",
        "isTrashed": False,
        "isPinned": False,
        "isArchived": False,
        "textContent": words.text(40),
        "title": f"Note {number}",
        "userEditedTimestampUsec": made,
        "createdTimestampUsec": made,
    }
    return json.dumps(note).encode()


def _sidecar(name: str, moment: datetime, number: int) -> bytes:
    at = {"timestamp": str(int(moment.timestamp())), "formatted": f"{moment:%b %d, %Y}"}
    place = {"latitude": 45 + number % 90 / 100, "longitude": 9.1, "altitude": 120.0}
    sidecar = {
        "title": name,
        "description": "",
        "imageViews": "3",
        "creationTime": at,
        "photoTakenTime": at,
        "geoData": place,
        "people": [{"name": f"Person {number % 40}"}],
        "url": f"https://photos.google.com/photo/{number}",
    }
    return json.dumps(sidecar).encode()
