"""What a dry run shows of the records that it found."""

from __future__ import annotations

import re
from io import StringIO

from rich.console import Console

from personal_server.cli.survey_report import print_survey
from personal_server.collecting.survey import SurveyTally


def test_the_first_record_of_each_stream_is_shown_with_its_values_on_a_line_each() -> None:
    tally = SurveyTally()
    tally.of("rides").read = 2
    tally.first["rides"] = {
        "id": "ride_1",
        "route": "Lake\nand hill",
        "with": ["Ann", "Bo"],
        "note": None,
        "words": "x" * 100,
    }
    out = Console(file=StringIO(), width=100)
    print_survey(tally, out)
    assert isinstance(out.file, StringIO)
    lines = out.file.getvalue().splitlines()
    rows = {name: cells for name, *cells in map(cells_of, lines)}
    assert rows["rides"] == ["2", "0"]
    assert (rows["route"], rows["with"]) == (["Lake and hill"], ["Ann, Bo"])
    assert len(rows["words"][0]) < 100
    assert not {"id", "note"} & rows.keys()
    assert max(map(len, lines)) <= 100


def cells_of(line: str) -> list[str]:
    """The cells of a line of a table, which stand two blanks apart at least."""
    return re.split(r" {2,}", line.strip())
