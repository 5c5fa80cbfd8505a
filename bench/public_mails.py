"""A mailbox of any size made of public mails: each copy of the corpus is other mails.

In the heads of a copy every message id and the year of `Date` are its own, so that its threads are
those of the corpus and no mail is one that was there; words, files and breaks stay as people wrote
them. `X-Copy` marks each mail once, for a count that knows nothing of mail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from bench import samples

SEPARATOR = re.compile(rb"^From ", re.MULTILINE)
MARK = b"\nX-Copy: "
FIRST_YEAR = 1975
_IDENTIFIER = re.compile(rb"(<[^<>\s]+@[^<>\s]+)>")
_LINKS = re.compile(rb"(?im)^(?:message-id|in-reply-to|references):.*(?:\n[ \t].*)*")
_YEAR = re.compile(rb"(?im)^(date:.*)\b20\d\d\b")


def repeated(gigabytes: float) -> Iterator[bytes]:
    """Mails, each as an entry of an mbox, until they are so many bytes."""
    size = 0
    corpus = _mails(samples.mailbox().path)
    for copy in count():
        for mail in corpus:
            if size >= gigabytes * 1e9:
                return
            entry = _copied(mail, copy)
            size += len(entry)
            yield entry


def marked(path: Path) -> int:
    """How many mails a file holds, counted by their marks alone."""
    with path.open("rb") as lines:
        return sum(line.startswith(MARK[1:]) for line in lines)


def _mails(path: Path) -> list[bytes]:
    content = path.read_bytes()
    begins = [match.start() for match in SEPARATOR.finditer(content)]
    return [content[a:b] for a, b in zip(begins, [*begins[1:], len(content)], strict=True)]


def _copied(mail: bytes, copy: int) -> bytes:
    head, gap, body = mail.partition(b"\n\n")
    mark = rb"\g<1>.copy%d>" % copy
    head = _LINKS.sub(lambda line: _IDENTIFIER.sub(mark, line[0]), head)
    head = _YEAR.sub(rb"\g<1>%d" % (FIRST_YEAR + copy % 50), head)
    separator, _, headers = head.partition(b"\n")
    return separator + MARK + b"%d\n" % copy + headers + gap + body
