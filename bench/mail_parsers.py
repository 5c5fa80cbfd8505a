"""`python -m bench.mail_parsers FOLDER --node FOLDER --python PYTHON [--show FIELD]`.

What this reader says of mails beside two parsers that share no code with it: `mailparser` of npm
(in `node_modules` of the one folder) and `fast_mail_parser` of PyPI, whose parser is written in
Rust (in the environment of that Python). FOLDER holds one mail a file. Compared are sender,
recipients, subject, instant, words and threads; `--show` lists the mails that differ in a field.
Nothing of it is kept.
"""

from __future__ import annotations

import argparse
import email.utils
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from pdpp_kernel.source_item import SourceRecord, ThreadLinks
from pdpp_sources.common.export import open_export
from pdpp_sources.mail import MailSource
from pdpp_sources.registry import reading_as

FIELDS = ("sender", "recipients", "subject", "sent_at", "words")
_ALIKE = 0.95  # of the words of both, where pages of HTML were made text in two ways
_NAMED = re.compile(r".* (?=<[^<>]+>\Z)", re.DOTALL)  # behind it stands the address
_QUOTED = re.compile(r'"[^"]*"')
_ADDRESS = re.compile(r"[^\s<>\"'(),;:]+@[^\s<>\"'(),;:]+")
_WORD = re.compile(r"\w+")
# how the text of a page names where its links and pictures lead: no part of the words here
_LINK = re.compile(
    r"\[[^\]\s]{1,2000}\]|\b(?:https?://|mailto:|www\.)[^\s\]>]{1,2000}", re.IGNORECASE
)
_IN_NODE = """
const fs = require('fs'), {simpleParser} = require('mailparser');
const addresses = (v) => [].concat(v || []).flatMap((a) => a.value).flatMap(
  (a) => a.group ? a.group.map((m) => m.address) : [a.address]).filter(Boolean);
(async () => { for (const path of fs.readFileSync(0, 'utf8').split('\\n').filter(Boolean)) {
  try {
    const mail = await simpleParser(fs.readFileSync(path), {skipTextToHtml: true});
    console.log(JSON.stringify({path, sender: addresses(mail.from)[0] || null,
      recipients: [...addresses(mail.to), ...addresses(mail.cc)], subject: mail.subject || null,
      sent_at: mail.date ? mail.date.getTime() / 1000 : null, words: mail.text || '',
      own: mail.messageId || null,
      links: [mail.inReplyTo, ...[].concat(mail.references || [])].filter(Boolean)}));
  } catch (error) { console.log(JSON.stringify({path, failed: String(error).slice(0, 80)})); }
} })();
"""
_IN_PYTHON = """
import json, sys
from fast_mail_parser import parse_email
for path in sys.stdin.read().split('\\n'):
    if not path:
        continue
    try:
        mail = parse_email(open(path, 'rb').read())
        heads = {name.lower(): value if isinstance(value, str) else value[0]
            for name, value in mail.headers.items()}
        print(json.dumps({'path': path, 'heads': heads, 'subject': mail.subject,
            'sent_at': heads.get('date'), 'words': '\\n'.join(mail.text_plain)}))
    except Exception as error:
        print(json.dumps({'path': path, 'failed': repr(error)[:80]}))
"""


@dataclass(frozen=True, slots=True)
class ReadMail:
    """What a parser says of a mail, in one form for all of them.

    Units: `sent_at` in seconds since 1970.
    """

    sender: str | None
    recipients: frozenset[str]
    subject: str
    sent_at: int | None
    words: Counter[str]
    own: str | None
    links: frozenset[str]


def main(folder: Path, node: Path, python: str, show: str | None) -> None:
    """Print how many mails are read alike, field by field."""
    ours, threads, skipped = ours_of(folder)
    paths = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    others = {
        "mailparser": read_by(["node", "-e", _IN_NODE], paths, node),
        "fast_mail_parser": read_by([python, "-c", _IN_PYTHON], paths, node),
    }
    print(f"{len(paths)} files; read here {len(ours)}, named {dict(skipped)}")
    for name, theirs in others.items():
        both = sorted(ours.keys() & theirs.keys())
        differing = {
            field: [path for path in both if not alike(field, ours[path], theirs[path])]
            for field in FIELDS
        }
        print(
            f"{name}: {len(theirs)} read, {len(both)} by both; differing "
            + ", ".join(f"{field} {len(found)}" for field, found in differing.items())
        )
        apart = threads_apart({path: theirs[path] for path in both}, threads)
        print(f"  threads by its links: {apart[0]}; parted here: {apart[1]}")
        for path in differing.get(show or "", ()):
            mine, other = (getattr(each[path], str(show)) for each in (ours, theirs))
            print(f"  {path}\n    here  {shown(mine, other)}\n    there {shown(other, mine)}")


def ours_of(folder: Path) -> tuple[dict[str, ReadMail], dict[str, str], Counter[str]]:
    """What this reader says of each file, its threads, and the codes of what it named."""
    found: dict[str, ReadMail] = {}
    threads = _Threads()
    skipped = Counter[str]()
    with open_export(folder) as export:
        begins = {member.offset: member.name for member in export.members if member.size_bytes}
        for item in reading_as(export, MailSource()).items():
            if not isinstance(item, SourceRecord):
                skipped[item.code] += 1
            elif item.stream == "messages" and item.position in begins:
                path = str(folder / begins[item.position])
                found[path] = _ours(item.data)
                threads.add(path, str(item.data["thread_id"]), item.thread)
    return found, threads.joined(), skipped


class _Joined:
    """Names that were said to be one, each known by one of them."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def join(self, one: str, other: str) -> None:
        """Both are one from now on."""
        self._parents[self.root(one)] = self.root(other)

    def root(self, name: str) -> str:
        """The name that stands for all that are one with it."""
        while (above := self._parents.setdefault(name, name)) != name:
            name = above
        return name


class _Threads:
    """Threads as an import joins them: by the marks that mails leave and look for."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self._left: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._looked: list[tuple[str, tuple[str, int, int]]] = []

    def add(self, path: str, thread: str, links: ThreadLinks | None) -> None:
        """Note a mail that would begin this thread."""
        self._paths[path] = thread
        for look in links.looks if links else ():
            self._looked.append((thread, look))
        for mark, at in links.leaves if links else ():
            self._left[mark].append((at, thread))

    def joined(self) -> dict[str, str]:
        """The thread of each mail."""
        threads = _Joined()
        for thread, (mark, since, until) in self._looked:
            for at, other in self._left[mark]:
                if since <= at <= until:
                    threads.join(thread, other)
        return {path: threads.root(thread) for path, thread in self._paths.items()}


def _ours(data: Mapping[str, Any]) -> ReadMail:
    written = [*(data["to"] or ()), *(data["cc"] or ())]
    sent_at = data.get("sent_at")
    return ReadMail(
        data["from_address"],
        _addresses([_NAMED.sub("", each) for each in written]),
        _line(data["subject"]),
        int(datetime.fromisoformat(sent_at).timestamp()) if sent_at else None,
        _words(data["body"]),
        data["internet_message_id"],
        frozenset([data["in_reply_to"]] if data["in_reply_to"] else ()),
    )


def read_by(command: Sequence[str], paths: Sequence[str], folder: Path) -> dict[str, ReadMail]:
    """What another parser says of each file that it can read."""
    done = subprocess.run(
        command, input="\n".join(paths), capture_output=True, text=True, cwd=folder, check=True
    )
    lines = (json.loads(line) for line in done.stdout.split("\n") if line)
    return {each["path"]: _theirs(each) for each in lines if "failed" not in each}


def _theirs(said: dict[str, Any]) -> ReadMail:
    if "heads" in said:
        heads: dict[str, str] = said["heads"]
        senders = sorted(_addresses([heads.get("from", "")]))
        said["sender"] = senders[0] if senders else None
        said["recipients"] = [heads.get("to", ""), heads.get("cc", "")]
        said["own"] = heads.get("message-id")
        said["links"] = [heads.get("in-reply-to", ""), *heads.get("references", "").split()]
        moment = _moment(said["sent_at"] or "")
    else:
        moment = None if said["sent_at"] is None else int(said["sent_at"])
    return ReadMail(
        (said["sender"] or "").lower() or None,
        _addresses(said["recipients"]),
        _line(said["subject"]),
        moment,
        _words(said["words"]),
        _bare(said["own"] or "") or None,
        frozenset(filter(None, map(_bare, said["links"]))),
    )


def alike(field: str, mine: ReadMail, other: ReadMail) -> bool:
    """Whether two say the same; of words nearly all have to be equal."""
    if field != "words":
        return getattr(mine, field) == getattr(other, field)
    most = max(mine.words.total(), other.words.total())
    return not other.words or (mine.words & other.words).total() >= _ALIKE * most


def threads_apart(mails: Mapping[str, ReadMail], ours: Mapping[str, str]) -> tuple[int, int]:
    """How many threads the links of mails make, and how many of those are several here."""
    linked = _Joined()
    for path, mail in mails.items():
        for link in (mail.own, *mail.links):
            if link:
                linked.join(path, f"<{link}>")
    joined: defaultdict[str, set[str]] = defaultdict(set)
    for path in mails:
        joined[linked.root(path)].add(ours[path])
    return len(joined), sum(len(each) > 1 for each in joined.values())


def shown(value: object, beside: object) -> str:
    """A value, or of words and addresses those that the other has not."""
    if isinstance(value, Counter) and isinstance(beside, Counter):
        words, others = cast("Counter[str]", value), cast("Counter[str]", beside)
        return f"{words.total()} words; alone: {list((words - others).keys())[:12]}"
    if isinstance(value, frozenset) and isinstance(beside, frozenset):
        mine, theirs = cast("frozenset[str]", value), cast("frozenset[str]", beside)
        return str(sorted(mine - theirs))
    return str(cast("object", value))[:200]


def _addresses(written: Sequence[str]) -> frozenset[str]:
    """What looks like an address, names in quotes left out."""
    found = (a for each in written for a in _ADDRESS.findall(_QUOTED.sub(" ", each)))
    return frozenset(address.lower() for address in found if address)


def _moment(written: str) -> int | None:
    try:
        moment = email.utils.parsedate_to_datetime(written)
    except (ValueError, TypeError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp())


def _line(text: str | None) -> str:
    return " ".join((text or "").split())


def _words(text: str | None) -> Counter[str]:
    """Whatever their case: one of the parsers writes headings of pages in capitals."""
    return Counter(_WORD.findall(_LINK.sub(" ", text or "").lower()))


def _bare(identifier: str) -> str:
    return identifier.strip().strip("<>,").strip()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.mail_parsers")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--node", type=Path, required=True, help="folder with node_modules")
    parser.add_argument("--python", default=sys.executable, help="Python with fast_mail_parser")
    parser.add_argument("--show", choices=FIELDS)
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(_options()))
