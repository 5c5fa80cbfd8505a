"""What is no error of ours: a disk that takes nothing is named, the rest is a defect."""

from __future__ import annotations

import errno

import pytest

from personal_server.web.error_responses import translate


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.ENOSPC, "disk_full"), (errno.EROFS, "read_only"), (errno.EIO, "write_failed")],
)
def test_a_disk_that_takes_nothing_is_no_defect(number: int, reason: str) -> None:
    answered = translate(OSError(number, "what it says", "/a/path/of/mine"), "req_1")
    assert (answered.status, answered.code) == (503, "storage_read_only")
    assert answered.members["reason"] == reason
    assert "mine" not in answered.message


def test_any_other_error_is_a_defect_whose_text_goes_nowhere() -> None:
    answered = translate(FileNotFoundError(errno.ENOENT, "no", "/a/path/of/mine"), "req_1")
    assert (answered.status, answered.code) == (500, "internal_error")
    assert "mine" not in answered.message
