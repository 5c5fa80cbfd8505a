"""What stores keep beside records: what is not shown, and what nothing was said of."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_kernel.unprinted import Unprinted
from personal_server.domain.stored import (
    BackupProof,
    Batch,
    ClockNote,
    RecordWrite,
    SealingKey,
    StoredDeclaration,
    WaitingRecord,
    WriteOutcome,
)


@pytest.mark.parametrize("kept", [StoredDeclaration, RecordWrite, SealingKey, WaitingRecord])
def test_content_and_secrets_are_written_into_no_log(kept: Any) -> None:
    assert issubclass(kept, Unprinted)


def test_what_nothing_was_said_of_is_nothing() -> None:
    note, proof = ClockNote(1), BackupProof(1)
    assert (note.jumped_at_ns, note.last_ns, note.steady_ns) == (None, 0, 0)
    assert (proof.proven_at_ns, proof.records, proof.skipped) == (None, 0, "")
    batch: Any = Batch("cin_a", object(), (), 1)  # type: ignore[arg-type]
    assert batch.receipts([WriteOutcome.CHANGED]) == ()
