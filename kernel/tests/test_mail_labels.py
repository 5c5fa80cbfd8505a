"""The line of labels before a mail, and what is no such line."""

from __future__ import annotations

import pytest

from pdpp_kernel.mail_labels import labels_data, labels_line, of_account

MAIL = b"Subject: tea\r\n\r\nNow.\r\n"


@pytest.mark.parametrize("labels", [[], ["Inbox"], ['a, b "c"', "Größe\n"]])
def test_labels_come_back_and_the_mail_is_as_it_was(labels: list[str]) -> None:
    assert of_account(labels_line(labels) + MAIL) == (MAIL, labels)


def test_a_mail_without_the_line_has_no_labels() -> None:
    assert of_account(MAIL) == (MAIL, None)


def test_a_line_that_is_no_json_belongs_to_the_mail() -> None:
    content = b"X-Account-Labels: [oops\r\n" + MAIL
    assert of_account(content) == (content, None)


@pytest.mark.parametrize("written", [b"{}", b"7", b'[1, null, {"a": 2}]'])
def test_what_is_no_label_is_left_out(written: bytes) -> None:
    assert of_account(b"X-Account-Labels: " + written + b"\r\n" + MAIL) == (MAIL, [])


def test_a_record_has_its_labels_as_a_list_and_as_a_text() -> None:
    assert labels_data(["a", "b"]) == {"labels": ["a", "b"], "labelled": "a, b"}
    assert labels_data([]) == {"labels": [], "labelled": None}
