"""What a dry run shows of the records that it found."""

from __future__ import annotations

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
    shown = [line.split(maxsplit=1) for line in out.file.getvalue().splitlines()]
    assert ["rides", "2                  0"] in [
        [a, *(b.strip() for b in rest)] for a, *rest in shown
    ]
    assert ["route", "Lake and hill"] in [[a, *(b.strip() for b in rest)] for a, *rest in shown]
    assert ["with", "Ann, Bo"] in [[a, *(b.strip() for b in rest)] for a, *rest in shown]
    assert not {"id", "note"} & {name for name, *_ in shown}
    assert max(len(line) for _, *rest in shown for line in rest) < 100
