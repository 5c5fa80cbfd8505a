from typing import Any

import jsonschema_rs
import orjson
import pytest

from personal_server.resource_server.shapes import DECLARATION_BODY
from tests.resource_server.living import JOURNAL

BODY = jsonschema_rs.Draft202012Validator(dict(DECLARATION_BODY))


def journal(**changes: Any) -> dict[str, Any]:
    return {**orjson.loads(JOURNAL.read_bytes()), **changes}


def test_a_good_declaration_fits() -> None:
    assert BODY.is_valid(journal())


def test_the_manifest_spelling_fits() -> None:
    manifest = journal(connector_id="https://x.example/j", version="1", display_name="Journal")
    for name in ("source", "declaration_version", "display"):
        del manifest[name]
    assert BODY.is_valid(manifest)


@pytest.mark.parametrize(
    "changes", [{"colour": 1}, {"streams": []}, {"connector_key": "No"}, {"protocol_version": "9"}]
)
def test_anything_else_does_not(changes: dict[str, Any]) -> None:
    assert not BODY.is_valid(journal(**changes))


def test_streams_are_closed_too() -> None:
    stream = journal()["streams"][0]
    assert not BODY.is_valid(journal(streams=[{**stream, "colour": 1}]))
