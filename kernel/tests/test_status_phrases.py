"""What an HTTP status is called."""

from __future__ import annotations

import pytest

from pdpp_kernel.status_phrases import status_phrase


@pytest.mark.parametrize(
    ("status", "phrase"),
    [
        (404, "Not Found"),
        (413, "Content Too Large"),
        (414, "URI Too Long"),
        (416, "Range Not Satisfiable"),
        (422, "Unprocessable Content"),
        (599, "HTTP status 599"),
    ],
)
def test_a_status_is_called_as_the_newest_python_calls_it(status: int, phrase: str) -> None:
    assert status_phrase(status) == phrase
