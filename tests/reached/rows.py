"""What the contract names: errors, by where they are answered, and events; how answers are read.

Shapes: a row is (path, status, error, reason); parts of a path that vary stand as `{id}`; a
redirect has the status 303 and the error of its query.  Of `/v1` and `/mcp` only the part that
docs/contract/authorization-server.md decides is listed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import orjson

from tests.overheard import Answer

_PAGE = re.compile(rb'data-error="([a-z_]+)"')
_SESSION = re.compile(r"^/~[^/]+")
_VARYING = re.compile(r"^/(consent|grants|grant-packages)/[^/]+(?=/revoke$|$)")
_REASON = re.compile(r"([a-z_]+)(?: /\S*)?: ")


class Row(NamedTuple):
    """One error at one place."""

    path: str
    status: int
    error: str
    reason: str = ""

    def __str__(self) -> str:
        return " ".join(map(str, self)).rstrip()


def contract() -> list[Row]:
    """Every row of the table."""
    with Path(__file__).with_name("errors.tsv").open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file, delimiter="\t")
        return [Row(t["path"], int(t["status"]), t["error"], t["reason"]) for t in lines]


def row_of(answer: Answer) -> Row | None:
    """The row that an answer stands for, if it is an error."""
    where = place(answer.path)
    if 300 <= answer.status < 400:
        return _of_redirect(where, answer)
    page = _PAGE.search(answer.body)
    if page:
        return Row(where, answer.status, page[1].decode())
    return _of_json(where, answer)


def place(path: str) -> str:
    """A path with what varies in it left out: ids, and the place of an owner's session."""
    path = _SESSION.sub("", path)
    if path.startswith("/v1"):
        return "/v1"
    if path in ("/grants/current", "/owner/"):
        return path
    return _VARYING.sub(lambda found: f"/{found[1]}/{{id}}", path)


def events() -> list[str]:
    """Every event of the audit trail."""
    return Path(__file__).with_name("events.txt").read_text(encoding="utf-8").split()


def unreached(reached: Iterable[Row], written: Iterable[str]) -> list[str]:
    """The rows that no answer stood for, and the events that nothing wrote."""
    rows = [str(row) for row in sorted(set(contract()) - set(reached))]
    return rows + [f"event {event}" for event in events() if event not in set(written)]


def _of_redirect(where: str, answer: Answer) -> Row | None:
    query = parse_qs(urlsplit(answer.location).query)
    if "error" not in query:
        return None
    error, said = query["error"][0], _REASON.match(query["error_description"][0])
    if error == "invalid_authorization_details" and said is not None:
        return Row(where, answer.status, error, said[1])
    return Row(where, answer.status, error)


def _of_json(where: str, answer: Answer) -> Row | None:
    try:
        body: Any = orjson.loads(answer.body)
        if isinstance(body["error"], str):
            return Row(where, answer.status, body["error"], body.get("reason", ""))
        return Row(where, answer.status, body["error"]["code"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
