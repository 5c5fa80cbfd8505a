"""What a disk that takes no writes is called."""

from __future__ import annotations

import errno

import pytest

from pdpp_kernel.refused_writes import (
    DATA_MOVED,
    DISK_FULL,
    DISK_LOW,
    READ_ONLY,
    SENTENCES,
    WRITE_FAILED,
    data_moved,
    read_only,
    refusal_of,
)


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, DISK_FULL),
        (errno.EDQUOT, DISK_FULL),
        (errno.EFBIG, DISK_FULL),
        (errno.EROFS, READ_ONLY),
        (errno.EIO, WRITE_FAILED),
    ],
)
def test_the_error_of_the_system_tells_why(number: int, reason: str) -> None:
    refused = refusal_of(OSError(number, "said by the system"))
    assert refused.code == "storage_read_only"
    assert refused.message == str(SENTENCES[reason])


def test_another_error_is_one_of_the_data_directory() -> None:
    refused = refusal_of(OSError(errno.EACCES, "denied"))
    assert refused.code == "storage_unavailable"
    assert "PDPP_DATA_DIR" in refused.message


@pytest.mark.parametrize(
    ("reason", "seconds"),
    [(DISK_FULL, 30), (WRITE_FAILED, 30), (DISK_LOW, 30), (READ_ONLY, None)],
)
def test_what_may_pass_is_worth_another_try(reason: str, seconds: int | None) -> None:
    refused = read_only(reason)
    assert refused.members.get("retry_after_seconds") == seconds
    assert refused.members["reason"] == reason


def test_data_that_moved_is_said_to_have_moved() -> None:
    refused = data_moved()
    assert refused.code == "storage_unavailable"
    assert refused.message == str(SENTENCES[DATA_MOVED])
