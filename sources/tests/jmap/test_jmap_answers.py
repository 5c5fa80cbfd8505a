"""What a JMAP server answers, as far as it is used; what is of another form is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_answers import (
    CORE,
    MAIL,
    EmailsAnswer,
    MethodRefused,
    decoded,
    download_url,
    problem_of,
    response_of,
    session_of,
)

AT = "https://jmap.example.org/session"
SESSION = {
    "apiUrl": "/api/",
    "downloadUrl": "/d/{accountId}/{blobId}/{name}?type={type}",
    "primaryAccounts": {MAIL: "A1"},
    "state": "7",
    "capabilities": {CORE: {"maxObjectsInGet": 10_000, "maxCallsInRequest": 0}},
}


def test_addresses_of_a_session_are_read_from_where_it_is() -> None:
    found = session_of(json.dumps(SESSION).encode(), AT)
    assert found is not None
    assert (found.api, found.account, found.state) == ("https://jmap.example.org/api/", "A1", "7")
    assert (found.most_objects, found.most_calls) == (500, 1)
    assert download_url(found, "G/1") == (
        "https://jmap.example.org/d/A1/G%2F1/mail.eml?type=application%2Foctet-stream"
    )


def test_an_account_may_be_called_as_its_owner_signs_in() -> None:
    session = SESSION | {"primaryAccounts": {MAIL: "ada@example.org"}}
    found = session_of(json.dumps(session).encode(), AT)
    assert found is not None
    assert "/d/ada%40example.org/G1/" in download_url(found, "G1")


def test_a_session_without_mail_is_none() -> None:
    for can, is_one in (MAIL, True), (CORE, False):
        accounts = {"A2": {"accountCapabilities": {can: True}}}
        session: dict[str, Any] = SESSION | {"primaryAccounts": {CORE: "A1"}, "accounts": accounts}
        assert (session_of(json.dumps(session).encode(), AT) is not None) is is_one


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("serverUnavailable", "mailbox_unreachable"),
        ("unknownMethod", "jmap_not_found"),
        ("accountNotFound", "jmap_not_found"),
    ],
)
def test_an_error_that_no_request_can_help_ends_the_run(kind: str, code: str) -> None:
    answer = {"methodResponses": [["error", {"type": kind}, "0"]], "sessionState": "1"}
    with pytest.raises(AccountTrouble) as caught:
        response_of(json.dumps(answer).encode(), ["Email/get"])
    assert caught.value.code == code


def test_other_errors_are_those_of_their_method() -> None:
    answer = {"methodResponses": [["error", {"type": "anchorNotFound"}, "0"]]}
    (found,), _ = response_of(json.dumps(answer).encode(), ["Email/query"])
    assert isinstance(found, MethodRefused)
    assert found.kind == "anchorNotFound"


@pytest.mark.parametrize(
    "answers", ["[]", '[["Email/get", {}, "1"]]', '[["Email/set", {}, "0"]]', '[["Email/get", {}]]']
)
def test_answers_to_something_else_are_refused(answers: str) -> None:
    with pytest.raises(AccountTrouble):
        response_of(f'{{"methodResponses": {answers}}}'.encode(), ["Email/get"])


def test_a_limit_that_was_met_passes() -> None:
    limit = b'{"type": "urn:ietf:params:jmap:error:limit", "limit": "maxConcurrentRequests"}'
    assert problem_of(limit) == "mailbox_unreachable"
    assert problem_of(b"<html>") == "mailbox_misbehaves"


def test_keywords_are_labels() -> None:
    email = {
        "id": "M1",
        "blobId": "B1",
        "size": 3,
        "mailboxIds": {"a": True, "b": False},
        "keywords": {"$flagged": True, "$draft": False, "invoices": True},
    }
    (found,) = decoded(json.dumps({"list": [email]}).encode(), EmailsAnswer).found
    seen = found.seen()
    assert (seen.mailboxes, seen.labels) == (["a"], ["Unread", "Starred", "invoices"])
    for bent in {"id": "../x"}, {"size": -1}, {"id": ""}, {"keywords": [1]}:
        with pytest.raises(AccountTrouble):
            decoded(json.dumps({"list": [email | bent]}).encode(), EmailsAnswer)
