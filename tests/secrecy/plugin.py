"""A pytest plugin: after the run, nothing it wrote holds a secret or a logged record value.

Rule: it is loaded before any module of the program, so that each one gets the observed
`secret_hash`; the program itself is what runs everywhere else.  Each worker judges its own tests.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator
from typing import Any

import pytest
from argon2 import PasswordHasher

from personal_server.consent import credentials
from tests.overheard import LISTENERS, Answer, observe_applications
from tests.secrecy.files import look_at_files
from tests.secrecy.watch import Watch

WATCH = Watch()
OURS = ("pdpp_kernel", "pdpp_sources", "pdpp_mcp_server", "personal_server")
# the page that asks for a user code and the page of a sign-in link show what they are about
SHOWN_ON = ("/device", "/owner/enter")
_PLACE = re.compile(r"^/~[^/]+")
_WRITTEN = ("Captured stderr", "Captured log")


def observed(secret_hash: Callable[[str], bytes], watch: Watch) -> Callable[[str], bytes]:
    """The same function; the digests that it gives are remembered."""

    def remembering(secret: str) -> bytes:
        digest = secret_hash(secret)
        watch.digests.add(digest)
        return digest

    return remembering


def kept(hashing: Callable[..., str], watch: Watch) -> Callable[..., str]:
    """The same method of hashing; the passwords are remembered."""

    def remembering(self: PasswordHasher, password: str, **options: Any) -> str:
        watch.passwords.add(password.encode())
        return hashing(self, password, **options)

    return remembering


class Listener(logging.Handler):
    """Hears log records whole, with their tracebacks and before any masking."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        self._watch.log(self.format(record), f"log of {record.name}")


def listen(answer: Answer) -> None:
    """Errors, error redirects and pages hold no secret."""
    if _PLACE.sub("", answer.path).startswith(SHOWN_ON):
        return
    if answer.counts:
        WATCH.hear(answer.body, f"answer of {answer.place}")
    if "error=" in answer.location:
        WATCH.hear(answer.location, f"redirect of {answer.place}")


def pytest_configure() -> None:
    listener = Listener(WATCH)
    for part in OURS:
        log = logging.getLogger(part)
        log.setLevel(logging.DEBUG)
        log.addHandler(listener)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    for title, text in report.sections:
        if title.startswith(_WRITTEN):
            WATCH.log(text, f"{title} of {item.nodeid}")
    return report


@pytest.fixture(scope="session", autouse=True)
def nothing_secret_is_left(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """The dump of every database and the search of every log, when the last test is done."""
    yield
    misplaced = look_at_files(tmp_path_factory.getbasetemp(), WATCH)
    found = [*WATCH.breaches(), *misplaced]
    assert not found, "in clear after the run:\n" + "\n".join(found)


def _observe() -> None:
    credentials.secret_hash = observed(credentials.secret_hash, WATCH)
    hashing: Any = PasswordHasher
    hashing.hash = kept(PasswordHasher.hash, WATCH)
    observe_applications()
    LISTENERS.append(listen)


_observe()
