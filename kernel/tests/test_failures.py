"""What is said of an error that nobody meant."""

from __future__ import annotations

import logging
import re

import pytest

from pdpp_kernel.failures import PLACES, log_failure, new_request_id, places_of


def fail(depth: int) -> None:
    if depth:
        fail(depth - 1)
    raise ValueError("a value of a record")


def failure(depth: int) -> ValueError:
    with pytest.raises(ValueError, match="record") as caught:
        fail(depth)
    return caught.value


def test_request_ids_differ() -> None:
    ids = {new_request_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch("req_[0-9a-f]{24}", each) for each in ids)


def test_places_are_the_innermost_lines_with_the_innermost_first() -> None:
    places = places_of(failure(10)).split(" < ")
    raised, called = fail.__code__.co_firstlineno + 3, fail.__code__.co_firstlineno + 2
    assert places == [f"test_failures.py:{line}" for line in (raised, *[called] * (PLACES - 1))]


def test_a_failure_is_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "pdpp_kernel.failures"):
        log_failure(failure(0), "req_1")
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "defect ValueError in req_1 at test_failures.py" in record.getMessage()
    assert "a value of a record" not in caplog.text
