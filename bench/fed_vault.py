"""`python -m bench.fed_vault [--seconds N] [--seed N] [--keep]`: a vault, edited while it is fed.

A folder of 83 public notes with `.obsidian` beside them is watched by `pdpp serve`, as a process.
For N seconds (300) a script does what people and programs do to a vault: notes made, edited in
place, saved by replacing them, saved slowly in pieces, pasted into at once (up to 2 MB), renamed,
moved, deleted; folders renamed; swap, lock and backup files of editors that come and go; pictures;
`.obsidian/workspace.json` written all the time.

While it goes on and at the end a counter that knows nothing of feeds (what the script wrote on one
side, `pdpp export` on the other) asks:

  half    is each text in the records one that was once whole in a file?
  end     is each note of the folder in the records, with its very text, and once?
  beside  is nothing else there?  With `--keep`, by which what is deleted or renamed in the folder
          stays: does each record beyond the folder belong to a note that once lay there?

Then `pdpp feed check` has to find no difference.  It ends with 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fed_terminal import FedTerminal
from bench.samples import notes
from bench.site import Site

FEED, EVERY = "vault", "30s"
WORDS = ("bread", "salt", "river", "ladder", "lamp", "Tuesday", "window", "garden", "slow", "north")
FRONT = re.compile(r"\A\s*---[^\S\n]*\n.*?^---[^\S\n]*$\n?", re.DOTALL | re.MULTILINE)
PICTURE = bytes.fromhex("89504e470d0a1a0a") + b"\0" * 64
FAULTS, BESIDE = ("missing", "differing", "twice", "of nothing"), "beside"
LOOK_SECONDS, SETTLING_SECONDS = 20.0, 240.0


@dataclass
class Vault:
    """A folder as somebody works in it.

    Shapes: `whole` are the digests of all texts that were whole in any file, `names` all paths
        that a note or picture ever had.
    """

    folder: Path
    draw: random.Random
    done: Counter[str] = field(default_factory=Counter[str])
    whole: set[str] = field(default_factory=set[str])
    names: set[str] = field(default_factory=set[str])
    _number: int = 0
    _slow: list[threading.Thread] = field(default_factory=list[threading.Thread])
    _held: set[Path] = field(default_factory=set[Path])

    def begin(self, source: Path) -> None:
        """Copy notes that others wrote, and have a program's own folder beside them."""
        shutil.copytree(source, self.folder)
        (self.folder / ".obsidian").mkdir()
        for note in self.notes():
            self._wrote(note, note.read_text(encoding="utf-8"))

    def notes(self) -> list[Path]:
        """All notes that are there and that nobody writes now, in the order of their paths."""
        there = (each for each in self.folder.rglob("*.md") if not each.name.startswith("."))
        return sorted(each for each in there if each not in self._held)

    def work(self, seconds: float) -> None:
        """Edit for so long, in bursts with rests between."""
        acts = [self.make] * 4 + [self.append] * 5 + [self.replace] * 5 + [self.slowly] * 2
        acts += [self.paste] * 2 + [self.rename] * 3 + [self.move] * 2 + [self.delete] * 2
        acts += [self.leavings] * 3 + [self.picture, self.rename_folder]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(self.draw.randrange(1, 30)):
                act = self.draw.choice(acts)
                act()
                self.done[act.__name__] += 1
                workspace = self.folder / ".obsidian" / "workspace.json"
                workspace.write_text(json.dumps({"acts": self.done.total()}), encoding="utf-8")
                time.sleep(self.draw.random() * 0.3)
            time.sleep(min(self.draw.random() * 12, max(0.0, end - time.monotonic())))
        for each in self._slow:
            each.join()

    def make(self) -> None:
        """A new note."""
        self._number += 1
        folder = self.draw.choice([self.folder, *self._folders()])
        self._write(folder / f"Note {self._number}.md", self._text())

    def append(self) -> None:
        """A note is saved in place, longer."""
        note = self._some()
        self._write(note, f"{note.read_text(encoding='utf-8')}\n{self._text()}")

    def replace(self) -> None:
        """A note is saved by putting another file in its place."""
        note, text = self._some(), self._text()
        beside = note.with_name(f"{note.name}.tmp")
        beside.write_text(text, encoding="utf-8")
        self._wrote(note, text)
        beside.replace(note)

    def slowly(self) -> None:
        """A note is written in pieces, over seconds."""
        note, text = self._some(), "\n\n".join(self._text() for _ in range(8))
        self._held.add(note)

        def write() -> None:
            with note.open("w", encoding="utf-8") as out:
                for begin in range(0, len(text), len(text) // 5 + 1):
                    out.write(text[begin : begin + len(text) // 5 + 1])
                    out.flush()
                    time.sleep(0.4)
                self._wrote(note, text)
            self._held.discard(note)

        self._slow.append(threading.Thread(target=write))
        self._slow[-1].start()

    def paste(self) -> None:
        """Much text at once."""
        self._write(self._some(), self._text(self.draw.randrange(10_000, 300_000)))

    def rename(self) -> None:
        """A note gets another name in its folder."""
        self._number += 1
        note = self._some()
        self._moved(note, note.with_name(f"Called {self._number}.md"))

    def move(self) -> None:
        """A note goes to another folder."""
        note = self._some()
        target = self.draw.choice([self.folder, *self._folders()]) / note.name
        if not target.exists():
            self._moved(note, target)

    def delete(self) -> None:
        """A note goes for good."""
        if len(self.notes()) > 40:
            self._some().unlink()

    def rename_folder(self) -> None:
        """A folder with all in it gets another name, if nobody writes in it now."""
        folders = [each for each in self._folders() if each.parent == self.folder]
        if not folders or self._held:
            return
        self._number += 1
        old, new = self.draw.choice(folders), self.folder / f"Folder {self._number}"
        for note in old.rglob("*.md"):
            self.names.add((new / note.relative_to(old)).relative_to(self.folder).as_posix())
        old.rename(new)

    def leavings(self) -> None:
        """What editors put beside a note, some of it left there."""
        note = self._some()
        names = (f".{note.name}.swp", f"~${note.name}", f"{note.name}~", f".#{note.name}", "4913")
        beside = note.with_name(self.draw.choice(names))
        beside.write_text(self._text(), encoding="utf-8")
        if beside.name.startswith("~$"):  # a program has the note open; this is called as a note is
            self.names.add(beside.relative_to(self.folder).as_posix())
        if beside.name != f"{note.name}~":
            beside.unlink()

    def picture(self) -> None:
        """A picture, and a note that shows it."""
        self._number += 1
        shown = self.folder / f"picture-{self._number}.png"
        shown.write_bytes(PICTURE + bytes([self._number % 256]))
        self.names.add(shown.name)
        self._write(self.folder / f"Shown {self._number}.md", f"![]({shown.name})")

    def _folders(self) -> list[Path]:
        return sorted(e for e in self.folder.rglob("*") if e.is_dir() and e.name[0] != ".")

    def _some(self) -> Path:
        return self.draw.choice(self.notes())

    def _text(self, words: int = 60) -> str:
        number = self.draw.random()
        lines = (" ".join(self.draw.choices(WORDS, k=12)) for _ in range(max(1, words // 12)))
        return f"About {number}\n\n" + "\n".join(lines)

    def _write(self, note: Path, text: str) -> None:
        self._wrote(note, text)
        note.write_text(text, encoding="utf-8")

    def _wrote(self, note: Path, text: str) -> None:
        self.whole.add(digest_of(text))
        self.names.add(note.relative_to(self.folder).as_posix())

    def _moved(self, note: Path, target: Path) -> None:
        self.names.add(target.relative_to(self.folder).as_posix())
        note.rename(target)


def digest_of(text: str) -> str:
    """What tells a text from others, without what stands before it and the blanks around it."""
    plain = FRONT.sub("", text.replace("\r\n", "\n"), count=1).strip()
    return hashlib.sha256(plain.encode()).hexdigest()


def notes_in(lines: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Path and digest of each note in the records."""
    return [
        (each["data"]["path"], hashlib.sha256(each["data"]["body"].strip().encode()).hexdigest())
        for each in lines
        if each["stream"] == "notes"
    ]


@dataclass
class Looks:
    """What the records held at some times."""

    terminal: FedTerminal
    vault: Vault
    looks: int = 0
    half: int = 0

    def look(self) -> None:
        """Ask once."""
        there = notes_in(self.terminal.lines())
        self.looks += 1
        self.half += sum(digest not in self.vault.whole for _, digest in there)


def compared(vault: Vault, lines: list[dict[str, Any]]) -> dict[str, int]:
    """What differs between folder and records, by kind of fault; and how much there is."""
    there = {
        each.relative_to(vault.folder).as_posix(): digest_of(each.read_text(encoding="utf-8"))
        for each in vault.notes()
    }
    here = notes_in(lines)
    paths = Counter(path for path, _ in here)
    held = dict(here)
    pictures = {each.name for each in vault.folder.glob("*.png")}
    files = Counter(each["data"]["path"] for each in lines if each["stream"] == "files")
    return {
        "there": len(there) + len(pictures),
        "here": len(here) + files.total(),
        "missing": len(there.keys() - held.keys()) + len(pictures - files.keys()),
        "differing": sum(held[path] != text for path, text in there.items() if path in held),
        "twice": sum(count > 1 for count in (*paths.values(), *files.values())),
        "of nothing": len((held.keys() | files.keys()) - vault.names),
        BESIDE: len(held.keys() - there.keys()) + len(files.keys() - pictures),
    }


def fed_vault(folder: Path, seconds: float, seed: int, deletions: str = "follow") -> int:
    """Edit, feed and compare; how many faults."""
    kinds = FAULTS if deletions == "keep" else (*FAULTS, BESIDE)
    vault = Vault(folder / "Vault", random.Random(seed))
    vault.begin(notes().path)
    terminal = FedTerminal(Site(folder / "site"))
    options = ("--name", FEED, "--every", EVERY, "--deletions", deletions)
    terminal.pdpp("feed", "add", str(vault.folder), *options)
    looks = Looks(terminal, vault)
    with terminal.site.serving():
        script = threading.Thread(target=vault.work, args=(seconds,))
        script.start()
        while script.is_alive():
            script.join(LOOK_SECONDS)
            looks.look()
        print(f"{vault.done.total()} acts in {seconds:.0f} s: {dict(vault.done)}", flush=True)
        ended = time.monotonic()
        figures = compared(vault, terminal.lines())
        while any(figures[each] for each in kinds) and time.monotonic() < ended + SETTLING_SECONDS:
            time.sleep(2)
            figures = compared(vault, terminal.lines())
        settled = time.monotonic() - ended
        looks.look()
        checked = terminal.pdpp("feed", "check", FEED)
        (feed,) = terminal.pdpp("feed", "list")
    short = checked["differences"]
    print(f"{looks.looks} looks meanwhile: {looks.half} texts that were never whole in a file")
    print(f"equal {settled:.0f} s after the last edit: {figures}")
    print(f"feed check: {len(short)} differences of {checked['records']} records; {feed['state']}")
    faults = looks.half + sum(figures[each] for each in kinds) + len(short)
    return faults + (feed["code"] is not None)


def main() -> int:
    """1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=35)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    deletions = "keep" if options.keep else "follow"
    with tempfile.TemporaryDirectory(prefix="bench-vault-") as name:
        faults = fed_vault(Path(name), options.seconds, options.seed, deletions)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
