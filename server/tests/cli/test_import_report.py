"""What an import tells of its records at the end."""

from __future__ import annotations

from pdpp_kernel.source_item import TextState
from personal_server.cli.import_report import TEXTS_SAID


def test_no_state_of_a_text_is_left_out_of_the_report() -> None:
    assert set(TEXTS_SAID) == set(TextState)
