"""What this server really answers, judged by the public suite."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.expected import EXPECTED
from tests.conformance.lending import lending
from tests.conformance.suite import REVISIONS, needs_suite, run_server_scenario

pytestmark = [pytest.mark.conformance, needs_suite]


# `test_server_scenarios` judges both revisions, and the tests of the requirement table judge every
# answer by the schema of its tool; here the suite starts anew for each of them.
@pytest.mark.long
@pytest.mark.parametrize("revision", REVISIONS)
def test_every_tool_resource_and_prompt_of_ours_passes_for_the_fixture(
    revision: str, tmp_path: Path
) -> None:
    with lending() as (url, door, loans):
        assert Counter(loan.scenario for loan in loans) == EXPECTED["own_answers"]
        for number, loan in enumerate(loans):
            door.loan, door.answers = loan, []
            run = run_server_scenario(url, loan.scenario, revision, tmp_path / str(number))
            (answer,) = door.answers
            assert answer, loan
            assert answer.get("isError", False) is loan.is_error, loan
            assert run.passed == {loan.scenario}, loan
            assert run.ends[loan.scenario]["wire-schema-valid"] == "SUCCESS", loan
