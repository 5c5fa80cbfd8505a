"""What an owner erased is looked for, byte by byte, in every file that its server has.

Rule: words that stand nowhere else are planted wherever records leave traces (in every version of a
record, in bytes, in what collectors leave, in the name of a connection), asked for in every way,
and erased by every road there is.  Then no file of the data directory or of the temporary folder
holds one of them; the kept backup that does is named in the receipts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from server.tests.app.http_server.served import CALLER, until
from tests.torture.tormented import Lost, Tormented

VERSIONS, NEIGHBOURS, LONG_WORDS = 3, 30, 3_000
# A word index keeps of a word only what differs from the word before it.
TELLING = 12
SECONDS = 240
_FIELDS = ("subject", "from_name", "body")
AT = "2026-01-01T00:00:00Z"


def erase(server: Tormented) -> None:
    """Beside other work; then once more with a kill -9 right after the last answer."""
    backup = server.folder / "holds.pdpp"
    with server.working(server.follow):
        planted = Planted(server)
        server.told("backup", str(backup))
        planted.erase([backup.name])
        planted.must_be_gone()
    backup.unlink()
    planted = Planted(server)
    planted.erase([])
    server.process.kill()
    server.process.wait()
    server.start_again()
    planted.must_be_gone()
    server.check()


class Planted:
    """Two connections of mail with words that stand nowhere else."""

    def __init__(self, server: Tormented) -> None:
        self._server = server
        self._words: dict[str, str] = {}
        self._ids = [self._connection(f"name {number}") for number in range(2)]
        for connection_id in self._ids:
            self._plant(connection_id)
        self._ask()
        found = self._found()
        older = tuple(
            f"{i} {n} {name}" for i in self._ids for n in range(VERSIONS - 1) for name in _FIELDS
        )
        missing = [place for place in self._words if place not in (*found, *older)]
        if missing:
            raise Lost(f"{missing} cannot be looked for")

    def erase(self, kept_backups: list[str]) -> None:
        """A record and a stream of the first connection, then each connection whole."""
        first = self._ids[0]
        receipts = [
            self._server.erase(f"/v1/streams/messages/records/m0?connection_id={first}"),
            self._server.erase(
                f"/v1/streams/attachments/records?confirm=attachments&connection_id={first}"
            ),
            *(self._server.erase(f"/v1/owner/connections/{i}?confirm={i}") for i in self._ids),
        ]
        for receipt in receipts:
            if (receipt or {"kept_backups": []})["kept_backups"] != kept_backups:
                raise Lost(f"the receipt of an erasure is {receipt}")

    def must_be_gone(self) -> None:
        """From every file, as soon as the server had some seconds.  Raises: Lost."""
        try:
            until(lambda: not self._found(), SECONDS)
        except TimeoutError:
            raise Lost(f"of what was erased there is {self._found()}") from None

    def _word(self, place: str) -> str:
        return self._words.setdefault(place, self._server.random.randbytes(16).hex())

    def _connection(self, place: str) -> str:
        asked = {"connector_key": "mail", "display_name": self._word(place)}
        return self._send("POST", "/v1/owner/connections", json=asked)["connection_id"]

    def _plant(self, connection_id: str) -> None:
        here = {"connection_id": connection_id}
        for version in range(VERSIONS):
            self._ingest("messages", here, self._mails(f"{connection_id} {version}", version))
        content = f"bytes {self._word(f'{connection_id} bytes')}".encode()
        place = {**here, "stream": "attachments", "record_key": "f0", "mime_type": "text/plain"}
        blob = self._send("POST", f"/v1/blobs?{urlencode(place)}", content=content)
        reference = {each: blob[each] for each in ("blob_id", "mime_type", "size_bytes", "sha256")}
        file = {"id": "f0", "message_id": "m0", "blob_ref": reference}
        file["filename"] = self._word(f"{connection_id} file")
        self._ingest("attachments", here, [{**file, "sent_at": AT, "size_bytes": len(content)}])
        bookmark = {"state": {"messages": {"at": self._word(f"{connection_id} bookmark")}}}
        self._send("PUT", f"/v1/state/mail?{urlencode(here)}", json=bookmark)

    def _mails(self, place: str, version: int) -> list[dict[str, Any]]:
        """A mail whose text is long at first and short in the end, among others."""
        words = {name: self._word(f"{place} {name}") for name in _FIELDS}
        words["body"] += " rain" * (LONG_WORDS // (1 + version) ** 4)
        others = [{"subject": f"Mail {n} {version}"} for n in range(1, NEIGHBOURS)]
        mails = [words, *others]
        return [{"id": f"m{n}", "sent_at": AT, **mail} for n, mail in enumerate(mails)]

    def _ingest(self, stream: str, place: Mapping[str, str], records: list[dict[str, Any]]) -> None:
        lines = [json.dumps({"data": record, "emitted_at": AT}) for record in records]
        sent = {"content": "\n".join(lines), "headers": {"Content-Type": "application/x-ndjson"}}
        found = self._send("POST", f"/v1/ingest/{stream}?{urlencode(place)}", **sent)
        if found["records_accepted"] != len(records):
            raise Lost(f"lines were refused: {found['rejections'][:1]}")

    def _ask(self) -> None:
        """Whatever could be remembered of an answer."""
        newest = self._word(f"{self._ids[0]} {VERSIONS - 1} body")
        for query in (newest, "rain"):
            self._send("GET", f"/v1/search?q={query}&limit=1")
        for connection_id in self._ids:
            here = f"connection_id={connection_id}"
            self._send("GET", f"/v1/streams/messages/records?{here}&limit=2&sort=-sent_at")
            self._send(
                "GET", f"/v1/streams/messages/aggregate?{here}&metric=count&group_by=from_address"
            )
            exported = self._server.asked(f"/v1/owner/export?{here}", self._server.owner_token)
            if newest.encode() not in exported.content and connection_id == self._ids[0]:
                raise Lost("an export lacks what was planted")

    def _send(self, method: str, path: str, **more: Any) -> Any:
        headers = {
            "Authorization": f"Bearer {self._server.owner_token}",
            **more.pop("headers", {}),
        }
        answer = CALLER.request(method, f"{self._server.origin}{path}", headers=headers, **more)
        if not answer.is_success:
            raise Lost(f"{method} {path} was answered {answer.status_code} {answer.text[:200]}")
        return answer.json()

    def _found(self) -> dict[str, set[str]]:
        """Places whose word some file holds, with the names of the files."""
        found: dict[str, set[str]] = {}
        for folder in (self._server.folder / "data", self._server.temporary):
            for path in [each for each in folder.rglob("*") if each.is_file()]:
                try:
                    content = path.read_bytes()
                except FileNotFoundError:
                    continue
                for place, word in self._words.items():
                    if word[-TELLING:].encode() in content:
                        found.setdefault(place, set()).add(path.name)
        return found
