"""How an answer is read as a row, and what a run says of rows that nothing answered."""

from __future__ import annotations

import pytest

from tests.nested import nested_run
from tests.overheard import Answer
from tests.reached.rows import Row, contract, events, place, row_of, unreached

BACK = b"http://127.0.0.1/cb?error=%s&error_description=%s&iss=x"


def test_every_row_stands_once() -> None:
    assert len(contract()) == len(set(contract())) > 100


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/oauth/token", "/oauth/token"),
        ("/consent/ar_x", "/consent/{id}"),
        ("/~Ab12/consent/ar_x", "/consent/{id}"),
        ("/grants/grt_x/revoke", "/grants/{id}/revoke"),
        ("/grant-packages/gpkg_x/revoke", "/grant-packages/{id}/revoke"),
        ("/grants/current", "/grants/current"),
        ("/v1/streams/entries/records", "/v1"),
    ],
)
def test_what_varies_in_a_path_is_left_out(path: str, expected: str) -> None:
    assert place(path) == expected


@pytest.mark.parametrize(
    ("answer", "row"),
    [
        (
            Answer("POST", "/oauth/token", 400, {}, b'{"error":"invalid_grant"}'),
            Row("/oauth/token", 400, "invalid_grant"),
        ),
        (
            Answer("POST", "/oauth/par", 400, {}, b'{"error":"x","reason":"malformed"}'),
            Row("/oauth/par", 400, "x", "malformed"),
        ),
        (
            Answer("GET", "/v1/schema", 401, {}, b'{"error":{"code":"invalid_token"}}'),
            Row("/v1", 401, "invalid_token"),
        ),
        (
            Answer("GET", "/device", 400, {}, b'<main data-error="invalid_user_code">'),
            Row("/device", 400, "invalid_user_code"),
        ),
        (
            Answer("GET", "/oauth/authorize", 303, {b"location": BACK % (b"invalid_scope", b"a")}),
            Row("/oauth/authorize", 303, "invalid_scope"),
        ),
        (
            Answer(
                "GET",
                "/oauth/authorize",
                303,
                {b"location": BACK % (b"invalid_authorization_details", b"malformed%20/0:%20No.")},
            ),
            Row("/oauth/authorize", 303, "invalid_authorization_details", "malformed"),
        ),
        (Answer("GET", "/oauth/authorize", 303, {b"location": b"/consent/ar_x"}), None),
        (Answer("GET", "/v1", 503, {}, b"<html>"), None),
        (Answer("POST", "/mcp", 400, {}, b'{"error":{}}'), None),
    ],
)
def test_each_family_of_errors_is_read(answer: Answer, row: Row | None) -> None:
    assert row_of(answer) == row


def test_rows_that_nothing_answered_are_named() -> None:
    rows, written = contract(), events()
    assert unreached(rows, written) == []
    assert unreached(rows[1:], written[1:]) == [str(rows[0]), f"event {written[0]}"]


def test_a_run_that_is_asked_names_them() -> None:
    done = nested_run("--reached", "server/tests/app/test_configured_clients.py")
    assert done.returncode == 0
    assert "no test reached: /oauth/token 400 invalid_grant" in done.stdout
