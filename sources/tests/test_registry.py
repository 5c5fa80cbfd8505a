"""What no source knows is refused, and every code of a report is documented."""

import re
from pathlib import Path

import pytest

from pdpp_sources.common.errors import ExportNotRecognized
from sources.tests.reading import read_path


def test_what_nobody_knows_is_refused_with_a_next_step(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir, please find enclosed")
    with pytest.raises(ExportNotRecognized) as caught:
        read_path(tmp_path)
    assert "pdpp sources" in caught.value.next_step


def test_every_code_of_a_report_is_documented() -> None:
    page = Path("docs/sources.md").read_text(encoding="utf-8")
    raised = re.compile(r'(?:BadRecord\(|Skipped\([^"()]*,|code = )\s*"([a-z_]+)"')
    codes = {
        code
        for path in Path("sources/src/pdpp_sources").rglob("*.py")
        for code in raised.findall(path.read_text(encoding="utf-8"))
    }
    assert len(codes) > 12
    assert {code for code in codes - {"usage"} if f"`{code}`" not in page} == set()
