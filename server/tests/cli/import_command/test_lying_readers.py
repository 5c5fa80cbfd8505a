"""What a reader may not do that a file broke out of."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from pdpp_sources import reader_child
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess
from server.tests.cli import import_machine, lying_reader
from server.tests.cli.import_machine import Machine
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_zip


def declared(machine: Machine) -> str:
    known = machine.store.declaration(lying_reader.KEY, None)
    assert known is not None
    return known.digest


def test_it_declares_no_source_of_the_program_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits by time go by what is declared, in the accounts of other files too."""
    machine = Machine()
    machine.run("import", as_zip(SPECIMENS[lying_reader.KEY], tmp_path / "bank.zip"))
    before, file = declared(machine), tmp_path / "mail.mbox"
    file.write_text("From a@x\nFrom: a@x\n\nhi\n")
    with ExitStack() as opened, monkeypatch.context() as patch:
        with monkeypatch.context() as of_liar:  # whoever is asked beside it is another
            of_liar.setattr(reader_child, "READER", lying_reader.__name__)
            liar = opened.enter_context(ReaderProcess(CostlyPlaces()))
        patch.setattr(import_machine, "_running", lambda: liar)
        code, report = machine.run("import", file)
    assert (code, report["error"]["code"]) == (65, "export_reader_failed")
    assert declared(machine) == before
