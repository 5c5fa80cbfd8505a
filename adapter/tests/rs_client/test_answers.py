from datetime import UTC, datetime
from typing import Any

import pytest

from pdpp_mcp_server.rs_client import answers
from pdpp_mcp_server.rs_client.port import RsResponse

now = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (403, {"error": {"code": "field_not_granted", "message": "no"}}, "field_not_granted"),
        (400, {"error": "invalid_grant", "error_description": "words"}, "invalid_grant"),
        (409, {"code": "ambiguous_connection"}, "ambiguous_connection"),
        (404, {"detail": "Not Found"}, "http_404"),
        (502, None, "http_502"),
        (500, ["odd"], "http_500"),
    ],
)
def test_any_refusal_has_type_code_and_message(status: int, body: Any, code: str) -> None:
    error = answers.error_of(RsResponse(status, body))
    assert error["code"] == code
    assert error["type"]
    assert error["message"]


def test_retry_with_becomes_its_field() -> None:
    body = {"error": {"code": "x", "retry_with": {"field": "connection_id", "guidance": "pick"}}}
    error = answers.error_of(RsResponse(409, body))
    assert (error["retry_with"], error["guidance"]) == ("connection_id", "pick")


def test_request_ids_come_from_headers_first() -> None:
    body = {"error": {"request_id": "three"}, "meta": {"request_id": "four"}}
    assert answers.request_id_of({"request-id": "one", "x-request-id": "two"}, body) == "one"
    assert answers.request_id_of({"x-request-id": "two"}, body) == "two"
    assert answers.request_id_of({}, body) == "three"
    assert answers.request_id_of({}, {"meta": {"request_id": "four"}}) == "four"


def test_waiting_is_seconds_or_a_date() -> None:
    assert answers.retry_after_of(429, "7", now) == 7
    assert answers.retry_after_of(503, "Thu, 01 Jan 2026 00:00:30 GMT", now) == 30
    assert answers.retry_after_of(503, "soon", now) is None
    assert answers.retry_after_of(500, "7", now) is None


@pytest.mark.parametrize("name", ["data", "records", "results", "hits"])
def test_rows_are_found_where_servers_put_them(name: str) -> None:
    rows = [{"id": "a"}]
    assert answers.rows_of({name: rows}) == rows
    assert answers.rows_of({"data": {name: rows}}) == rows
    assert answers.rows_of(answers.with_rows({"data": {name: rows}}, [])) == []


def test_a_cursor_may_stand_in_a_link_only() -> None:
    body = {"links": {"next": "/v1/x?limit=2&cursor=a%2Bb"}}
    assert answers.next_cursor_of(body) == "a+b"
    assert answers.next_cursor_of({"next_cursor": "c", **body}) == "c"
    assert answers.next_cursor_of({}) is None


def test_counts_come_in_both_forms() -> None:
    assert answers.count_of({"meta": {"count": {"kind": "exact", "value": 3}}}) == ("exact", 3)
    assert answers.count_of({"meta": {"count": 3, "count_accuracy": "estimated"}}) == (
        "estimated",
        3,
    )
    assert answers.count_of({"meta": {"count": {"kind": "none"}}}) is None


def test_connector_keys_are_short() -> None:
    assert (
        answers.connector_key_of({"connector_id": "https://r.example/connectors/gmail"}) == "gmail"
    )
    assert answers.connection_of({"connector_instance_id": "cin_a"}) == "cin_a"
