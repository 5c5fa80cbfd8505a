"""A file that is refused is imported by the `--as` that the refusal names."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.tests.cli.import_machine import Machine
from sources.tests.test_likeness import REFUSED


@pytest.mark.parametrize("name", sorted(name for name, (_, works) in REFUSED.items() if works))
def test_what_is_refused_is_imported_as_the_refusal_says(name: str, tmp_path: Path) -> None:
    content, works = REFUSED[name]
    assert works is not None
    path = tmp_path / name
    path.write_bytes(content)
    code, printed = Machine().run("import", path, "--as", works)
    assert code == 0
    (report,) = printed["imports"]
    assert sum(tally["new"] for tally in report["streams"].values()) > 0
