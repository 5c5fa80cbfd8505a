"""A backup made in the middle of everything and restored elsewhere, held against a ledger.

Rule: the ledger is the harness's own: which batches it sent and when they were acknowledged, the
mailbox it made, what it erased, whom it gave access.  Everything is asked over the wire.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from personal_server.app.owner_store import open_owner_store
from server.tests.app.http_server.served import mint_owner_token, until
from tests.torture.tormented import (
    FEED,
    PAYMENTS,
    WITH_FILE,
    Follower,
    Lost,
    Tormented,
    file_of,
    line_of,
)

MAILS, SOME_MAILS, ERASED_MAILS = 1_500, 40, 4
HOUSE = (("cin_work", "messages"), ("cin_checking", "transactions"))
Held = Mapping[tuple[str, str], Mapping[str, Any]]


def restore(server: Tormented) -> None:
    """`pdpp backup` during an import; then access is ended, records are erased, and it returns."""
    house = exported(server)
    number = server.counts["restored"]
    server.counts["restored"] += 1
    name, gone = f"Restored {number}", f"Gone {number}"
    server.told("import", str(server.mailbox(ERASED_MAILS)), "--connection", gone)
    backup = server.folder / f"{number}.pdpp"
    with server.working(server.grant, server.follow):
        server.work_for(5)
        until(lambda: len(server.granted) > 2)
        importing = server.command("import", str(server.mailbox(MAILS)), "--connection", name)
        until(lambda: _count(server, name) >= SOME_MAILS or importing.poll() is not None, 120)
        acknowledged, granted = list(server.kept), dict(server.granted)
        mails = _count(server, name)
        made = server.told("backup", str(backup))
        sent = len(server.sent)
        server.work_for(5)
        if importing.wait(timeout=300):
            raise Lost("an import beside a backup failed")
        ended = _end_one(server, granted)
        _erase_some(server, acknowledged, name, gone, backup.name)
        server.work_for(5)
        server.follow()
    server.check()
    server.stop()  # the list of erasures is written within a minute, or now
    with _restored(server, backup.name, made) as other:
        _access_is_closed(other, server, granted, ended)
        held = exported(other)
        for place in HOUSE:
            if held[place] != house[place]:
                raise Lost(f"{place} is not what it was")
        _batches_are_those_of_the_backup(server, held["cin_home", "messages"], acknowledged, sent)
        _mails_are_a_beginning(other, held, other.connection(name), mails)
        if gone in other.connections():
            raise Lost("a connection that was erased is back")
        _follower_starts_over(server.follower, other, set(held["cin_home", "messages"]))
    backup.unlink()
    server.start_again()
    server.erase(f"/v1/owner/connections/{(c := server.connection(name))}?confirm={c}")
    server.check()


def exported(server: Tormented) -> Held:
    """Every record, by stream and key, as the owner takes it away."""
    answer = server.asked("/v1/owner/export", server.owner_token)
    if answer.status_code != 200:
        raise Lost(f"the export was answered {answer.status_code}")
    _, *lines, end = [json.loads(line) for line in answer.text.splitlines()]
    if end["record_count"] != len(lines):
        raise Lost("the export is not whole")
    held: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        held.setdefault((line["connection_id"], line["stream"]), {})[line["key"]] = line["data"]
    return held


def _count(server: Tormented, name: str) -> int:
    return server.connections().get(name, {}).get("record_count", 0)


def _end_one(server: Tormented, granted: Mapping[str, str]) -> str:
    """End an access that the backup holds; it worked until then."""
    ended = server.random.choice(sorted(granted))
    if server.asked(PAYMENTS, granted[ended]).status_code != 200:
        raise Lost("an access that nobody ended does not work")
    server.told("grant", "revoke", ended)
    server.ended.add(ended)
    del server.granted[ended]
    return ended


def _erase_some(
    server: Tormented, acknowledged: list[int], name: str, gone: str, backup: str
) -> None:
    """Three records, a mail, its file, a connection; the receipt names the backup."""
    batches = server.random.sample(acknowledged, 3)
    keys = {server.random.choice(server.sent[each]) for each in batches} - server.erased
    for key in sorted(keys):
        server.promised.discard(key)
        server.erase(f"/v1/streams/messages/records/{key}?connection_id=cin_home")
    server.erased |= keys
    connection_id = server.connection(name)
    for stream, key in _first_mail(server, connection_id):
        server.erase(f"/v1/streams/{stream}/records/{quote(key)}?connection_id={connection_id}")
    connection_id = server.connection(gone)
    receipt = server.erase(f"/v1/owner/connections/{connection_id}?confirm={connection_id}")
    if receipt["kept_backups"] != [backup]:
        raise Lost(f"the receipt of an erasure names {receipt['kept_backups']}")


def _first_mail(server: Tormented, connection_id: str) -> list[tuple[str, str]]:
    """The keys of the first mail and its file."""
    path = f"records?connection_id={connection_id}&filter[subject]=Mail%200"
    [mail] = server.asked(f"/v1/streams/messages/{path}", server.owner_token).json()["data"]
    return [("messages", mail["id"]), ("attachments", f"{mail['id']}.1")]


@contextmanager
def _restored(server: Tormented, name: str, made: Mapping[str, Any]) -> Generator[Tormented]:
    """The backup in a directory of its own, and a server on it at the same address."""
    other = Tormented(server.folder / "elsewhere", {}, port=server.port, random=server.random)
    erasures = server.folder / "data" / "erasures.jsonl"
    try:
        told = other.told("restore", str(server.folder / name), "--erasures", str(erasures))
        if any(told[each] != made[each] for each in ("records", "blobs", "grants")):
            raise Lost(f"{told} was restored of {made}")
        other.start()
        with open_owner_store(other.settings) as store:
            other.owner_token = mint_owner_token(store)
        yield other
        other.stop()
    finally:
        other.end()
        shutil.rmtree(other.folder)


def _access_is_closed(
    other: Tormented, server: Tormented, granted: Mapping[str, str], ended: str
) -> None:
    """Every access waits, then goes on without its tokens; what was ended stays ended."""
    _expect(other, dict.fromkeys(granted, "grant_paused") | {ended: "grant_revoked"}, granted)
    for token in (server.owner_token, server.client_token):  # one from after the backup
        _expect(other, {"": "invalid_token"}, {"": token})
    listed = {each["id"]: each["status"] for each in other.told("grant", "list", "--all")}
    if not granted.keys() <= listed.keys():
        raise Lost("grants are missing")
    if any(listed[each] != ("revoked" if each in server.ended else "paused") for each in listed):
        raise Lost(f"grants are {set(listed.values())}")
    if other.command("grant", "resume", "--all").wait(timeout=60):
        raise Lost("access that waits cannot go on")
    _expect(other, dict.fromkeys(granted, "invalid_token") | {ended: "grant_revoked"}, granted)
    other.refresh_token = server.refresh_token
    if other.refresh() or other.faults != ["refresh 400 invalid_grant"]:
        raise Lost(f"a refresh token was restored: {other.faults}")


def _expect(other: Tormented, codes: Mapping[str, str], tokens: Mapping[str, str]) -> None:
    for name, token in tokens.items():
        answer = other.asked(PAYMENTS, token)
        if answer.status_code == 200 or answer.json()["error"]["code"] != codes[name]:
            raise Lost(f"a token of before was answered {answer.status_code} {answer.text[:200]}")


def _batches_are_those_of_the_backup(
    server: Tormented, found: Mapping[str, Any], acknowledged: list[int], sent: int
) -> None:
    """Each batch whole or not at all: all up to some moment while the backup was made, no later."""
    house = {key for key in found if not key.startswith("b")}
    whole = {
        number
        for number, ids in enumerate(server.sent)
        if (left := set(ids) - server.erased) <= found.keys() and left
    }
    expected = {key for number in whole for key in server.sent[number]} - server.erased
    if found.keys() - house != expected:
        raise Lost("a batch was restored in parts, or what was erased is back")
    if any(found[key] != line_of(key)["data"] for key in expected):
        raise Lost("a record came back as another")
    kept = [number for number in server.kept if len(set(server.sent[number]) - server.erased)]
    restored = [number for number in kept if number in whole]
    if restored != kept[: len(restored)] or not set(acknowledged) & set(kept) <= whole:
        raise Lost("a batch from before the backup is missing")
    if whole and max(whole) >= sent:
        raise Lost("a batch from after the backup is there")


def _mails_are_a_beginning(other: Tormented, held: Held, connection_id: str, at_least: int) -> None:
    """Of the mailbox there is a first part, file by file; of its first mail nothing."""
    mails = held[connection_id, "messages"]
    numbers = sorted(int(mail["subject"].removeprefix("Mail ")) for mail in mails.values())
    files = sorted(
        (int(file["filename"].removesuffix(".bin")), file["blob_ref"]["blob_id"])
        for file in held.get((connection_id, "attachments"), {}).values()
    )
    if [number for number, _ in files] != list(range(len(files) * WITH_FILE + 1))[
        WITH_FILE::WITH_FILE
    ]:
        raise Lost("files of mails are missing")
    if numbers != list(range(1, len(numbers) + 1)) or len(numbers) + len(files) + 2 < at_least:
        raise Lost(f"of {at_least} mails and files that were there {len(numbers)} mails came back")
    for number, blob_id in files:
        blob = other.asked(f"/v1/blobs/{blob_id}?connection_id={connection_id}", other.owner_token)
        if blob.content != file_of(number):
            raise Lost("a file came back as another")


def _follower_starts_over(follower: Follower, other: Tormented, held: set[str]) -> None:
    """Its bookmark is refused, and from the beginning it ends with what is there."""
    answer = other.asked(FEED + follower.bookmark, other.owner_token)
    if answer.status_code != 410:
        raise Lost(f"a follower that is ahead was answered {answer.status_code}")
    again = Follower()
    again.follow(other)
    if again.copy != held:
        raise Lost("a follower does not end with what is there")
