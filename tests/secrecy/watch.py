"""What the suite is watched for: a secret in clear where none may stand.

Rule: a secret is recognised as the store recognises it, by its SHA-256.  Nothing is kept of the
secrets themselves, and those of spawned servers are known from the tables they left.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from personal_server.consent.credentials import (
    ACCESS_TOKEN,
    AUTHORIZATION_CODE,
    DEVICE_CODE,
    INTROSPECTION_SECRET,
    OWNER_LINK,
    REFRESH_TOKEN,
    REQUEST_URI,
    USER_CODE_ALPHABET,
    USER_CODE_LENGTH,
)

RANDOM_CHARS = 43
WINDOWED_CHARS = 60
SHOWN_CHARS = 12
REMEMBERED_CHARS = 100

_PREFIXES = (
    ACCESS_TOKEN,
    REFRESH_TOKEN,
    AUTHORIZATION_CODE,
    DEVICE_CODE,
    OWNER_LINK,
    INTROSPECTION_SECRET,
    REQUEST_URI,
)
_PREFIXED = re.compile(f"(?:{'|'.join(_PREFIXES)})[A-Za-z0-9_-]{{{RANDOM_CHARS}}}".encode())
_RUN = re.compile(rb"[A-Za-z0-9_-]{43,}")
_ANY = re.compile(rb"[A-Za-z0-9_:-]{%d,}" % USER_CODE_LENGTH)
"""Every form of a secret lies within one of these; a database has few different ones."""
_HALF = f"[{USER_CODE_ALPHABET}]{{{USER_CODE_LENGTH // 2}}}"
_USER_CODE = re.compile(f"(?=({_HALF})-?({_HALF}))".encode())


def candidates(word: bytes) -> Iterator[bytes]:
    """Everything in a word of `_ANY` that has the form of a secret of ours.

    A secret without prefix (a cookie) is looked for at every place of a word of up to
    `WINDOWED_CHARS`; longer words are encoded data, where only prefixes are looked for.
    """
    yield from _PREFIXED.findall(word)
    for run in _RUN.findall(word):
        if len(run) <= WINDOWED_CHARS:
            for start in range(len(run) - RANDOM_CHARS + 1):
                yield run[start : start + RANDOM_CHARS]
    for first, second in _USER_CODE.findall(word):
        yield first + second


@dataclass
class Watch:
    """Digests of the secrets that were in use, and what was written where.

    Passwords have no form to be found by, so they are kept; there are few.  What was looked at is
    not looked at again, as a run leaves the same pages and words in hundreds of databases: a page
    or value until there is another password, a word for good.
    """

    digests: set[bytes] = field(default_factory=set[bytes])
    passwords: set[bytes] = field(default_factory=set[bytes])
    logged: set[str] = field(default_factory=set[str])
    _seen: dict[bytes, str] = field(default_factory=dict[bytes, str])
    _passwords_in: set[str] = field(default_factory=set[str])
    _heard: set[bytes] = field(default_factory=set[bytes])
    _heard_for: int = 0
    _words: set[bytes] = field(default_factory=set[bytes])

    def hear(self, text: str | bytes, place: str) -> None:
        """Something was written at a place where no secret may stand."""
        raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
        if self._was_heard(raw):
            return
        if any(password in raw for password in self.passwords):
            self._passwords_in.add(f"{place}: a password")
        for form in (raw, unquote_to_bytes(raw)) if b"%" in raw else (raw,):
            words = set(_ANY.findall(form)) - self._words
            self._words.update(word for word in words if len(word) <= REMEMBERED_CHARS)
            for word in words:
                for found in candidates(word):
                    digest = hashlib.sha256(found).digest()
                    self._seen.setdefault(digest, f"{place}: {_shown(found)}")

    def _was_heard(self, raw: bytes) -> bool:
        """Whether the same was looked at, and for every password that is known by now."""
        if self._heard_for != len(self.passwords):
            self._heard.clear()
            self._heard_for = len(self.passwords)
        digest = hashlib.blake2b(raw, digest_size=16).digest()
        if digest in self._heard:
            return True
        self._heard.add(digest)
        return False

    def log(self, line: str, place: str) -> None:
        """A log line; it is also searched for record values."""
        self.hear(line, place)
        self.logged.add(line)

    def breaches(self) -> list[str]:
        """Every place where a secret stood, with its first characters."""
        secrets = {self._seen[digest] for digest in self.digests & self._seen.keys()}
        return sorted(secrets | self._passwords_in)


def _shown(secret: bytes) -> str:
    return secret[:SHOWN_CHARS].decode() + "…"
