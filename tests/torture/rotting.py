"""Bytes of the database change on the disk: letters of records, then whatever a page holds.

Rule: an answer is right, or says that it cannot be given; none shows a wrong value, none is a 500.
`pdpp doctor --data` names the damage, unless everything is still there and right.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2

from tests.torture.restoring import Held, exported
from tests.torture.tormented import FEED, NO_ANSWER, Lost, Tormented

RECORDS, PAGES, FLIPS, PAGE_BYTES = 5, 3, 8, 4_096
REFUSALS = {422: "damaged_record", 503: "storage_unavailable"}
FOUND_FAULTS = 69
CUT_OFF = (httpx2.RemoteProtocolError, httpx2.ReadError)
PLACE = "/v1/streams/messages/records?connection_id=cin_home"


def rot(server: Tormented) -> None:
    """Beside a running server and before a start; afterwards the file is as it was."""
    server.check()
    right = exported(server)
    server.stop()
    whole = server.settings.database_path.read_bytes()
    for is_running in (True, False):
        if is_running:
            server.start_again()
        changed = _change_letters(server, whole)
        if not is_running:
            server.start_again()
        _must_be_right(server, right, changed)
        _put_back(server, whole, must_be_named=True)
    _flip_bytes(server, whole)
    try:
        server.start_again()
        is_complete = _must_be_right(server, right, [])
    except AssertionError:  # it refuses to start
        is_complete = False
    _put_back(server, whole, must_be_named=not is_complete)
    server.start_again()
    server.check()


def _change_letters(server: Tormented, whole: bytes) -> list[str]:
    """Other letters in the texts of some records; the keys of these."""
    keys = server.random.sample(sorted(server.promised), RECORDS)
    content = bytearray(whole)
    for key in keys:
        letters, start = f'"Rain on {key}"'.encode(), 0
        while (start := whole.find(letters, start)) >= 0:
            content[start + 2 : start + 4] = b"ui"
            start += 1
    server.settings.database_path.write_bytes(content)
    return keys


def _flip_bytes(server: Tormented, whole: bytes) -> None:
    """Anything in some pages but the first, which says what the file is."""
    content, chosen = bytearray(whole), server.random
    for _ in range(PAGES):
        page = chosen.randrange(1, len(whole) // PAGE_BYTES) * PAGE_BYTES
        for _ in range(FLIPS):
            content[page + chosen.randrange(PAGE_BYTES)] ^= chosen.randrange(1, 256)
    server.settings.database_path.write_bytes(content)


def _put_back(server: Tormented, whole: bytes, *, must_be_named: bool) -> None:
    """End the server, ask the doctor, and make the file what it was."""
    server.end()
    doctor = server.command("doctor", "--data").wait(timeout=120)
    path = server.settings.database_path
    path.write_bytes(whole)
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    if doctor not in (0, FOUND_FAULTS) or (must_be_named and not doctor):
        raise Lost(f"pdpp doctor --data ended with {doctor}")


def _must_be_right(server: Tormented, right: Held, changed: list[str]) -> bool:
    """Every answer; whether nothing was missing from them.  Raises: Lost."""
    expected = right["cin_home", "messages"]
    found: list[set[str]] = []
    for first in (f"{PLACE}&limit=100", f"{FEED}beginning"):
        rows = list(_pages(server, first))
        found.append({row["id"] for row in rows if _is_right(row["id"], row["data"], expected)})
    for key in changed:
        _asked(server, f"{PLACE.replace('?', f'/{key}?')}")
    for path in ("/v1/search?q=rain&limit=50", "/v1/streams", "/v1/schema?view=compact"):
        _asked(server, path)
    exported_lines = _asked(server, "/v1/owner/export?connection_id=cin_home")
    if exported_lines is not None:
        lines = [json.loads(line) for line in exported_lines.text.splitlines()]
        rows = [line for line in lines if line.get("stream") == "messages"]
        found.append({row["key"] for row in rows if _is_right(row["key"], row["data"], expected)})
    return exported_lines is not None and all(keys == set(expected) for keys in found)


def _is_right(key: str, data: Any, expected: Any) -> bool:
    if expected.get(key) != data:
        raise Lost(f"{key} was shown as {data}")
    return True


def _pages(server: Tormented, first: str) -> Iterator[Any]:
    path: str | None = first
    while path is not None:
        answer = _asked(server, path)
        if answer is None:
            return
        page = answer.json()
        yield from page["data"]
        path = page["links"]["next"]


def _asked(server: Tormented, path: str) -> httpx2.Response | None:
    """An answer; `None` for one that says that it cannot be given."""
    try:
        answer = server.asked(path, server.owner_token)
    except NO_ANSWER as error:
        if isinstance(error, CUT_OFF) and "/export" in path and server.process.poll() is None:
            return None  # its head was sent already; without its last line it is known to be cut
        raise Lost(f"{path} was not answered: {server.log[-500:]}") from None
    if answer.status_code == 200:
        return answer
    if REFUSALS.get(answer.status_code) != answer.json()["error"]["code"]:
        raise Lost(f"{path} was answered {answer.status_code} {answer.text[:200]}")
    return None
