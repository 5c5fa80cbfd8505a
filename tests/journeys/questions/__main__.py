"""135 questions over five real archives, in five views each, two calls at most.

`python -m tests.journeys.questions` imports a mailbox, a bank statement, chats, two calendars and
notes, grants a slice of each, serves it and asks over stdio, after one call of `schema`.  Every
answer is compared with one computed from all records read over REST; one that is made of records
names them by their ids.  No question takes more than two calls, no face of a result more than
20,000 characters.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.journeys.questions.archives import served
from tests.journeys.questions.outcomes import Outcome, all_asked, questions
from tests.journeys.views import views


def main() -> int:
    outcomes: list[Outcome] = []
    with (
        tempfile.TemporaryDirectory(prefix="pdpp-questions-") as folder,
        served(Path(folder), with_mail=True) as home,
    ):
        for outcome in all_asked(home, with_mail=True):
            outcomes.append(outcome)
            told = outcome.fault or f"yes, {outcome.calls} calls, {outcome.chars} characters"
            words = f"{outcome.question.kind}: {outcome.question.words}"
            print(f"{words:<95} {outcome.view.name:<16} {told}", flush=True)
    wrong = sum(bool(each.fault) for each in outcomes)
    print(
        f"{len(questions)} questions, {len(views)} views, {wrong} without the right answer; at most"
        f" {max(o.calls for o in outcomes)} calls and {max(o.chars for o in outcomes)} characters"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
