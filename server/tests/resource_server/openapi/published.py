"""The OpenAPI document as a whole server publishes it, and the copy that is kept of it.

`python -m server.tests.resource_server.openapi.published` writes the copy anew.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2

from personal_server.app.server import open_server
from personal_server.settings import Settings

KEPT = Path(__file__).resolve().parents[1] / "openapi.json"
ORIGIN = "http://127.0.0.1:7662"
OPENED = 5  # levels of the document whose members have a line each


def published(path: str = "/v1/openapi.json") -> dict[str, Any]:
    """The document that a fresh server answers with."""

    async def read() -> dict[str, Any]:
        transport = httpx2.ASGITransport(app=server.app, client=("127.0.0.1", 1))
        async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as client:
            answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    with (
        tempfile.TemporaryDirectory() as folder,
        open_server(Settings(data_dir=Path(folder))) as server,
    ):
        return anyio.run(read)


def text(document: dict[str, Any]) -> str:
    """The document with sorted names, in lines that a difference can be read in.

    The names of `required` are sorted too: they are a set.
    """
    return "".join(_written(_settled(document), 0)) + "\n"


def _settled(value: object, name: str = "") -> object:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {each: _settled(member, each) for each, member in members.items()}
    if isinstance(value, list):
        items = [_settled(item) for item in cast("list[object]", value)]
        return sorted(map(str, items)) if name == "required" else items
    return value


def _written(value: object, depth: int) -> Iterator[str]:
    if not isinstance(value, dict) or not value or depth == OPENED:
        yield json.dumps(value, sort_keys=True, ensure_ascii=False)
        return
    members = cast("dict[str, object]", value)
    begin = "{\n"
    for name in sorted(members):
        yield f"{begin}{' ' * (depth + 1)}{json.dumps(name, ensure_ascii=False)}: "
        yield from _written(members[name], depth + 1)
        begin = ",\n"
    yield f"\n{' ' * depth}}}"


if __name__ == "__main__":
    KEPT.write_text(text(published()), encoding="utf-8")
