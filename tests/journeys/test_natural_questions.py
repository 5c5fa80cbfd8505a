"""A hundred questions as people type them: none is answered by nothing at all."""

from __future__ import annotations

from collections.abc import Generator
from shutil import rmtree
from typing import Any

import pytest

from bench.clients import RestCaller
from bench.samples import mailbox, statement
from bench.site import Site
from tests.journeys.natural_questions import archive_of, natural_questions
from tests.journeys.test_attachments import run

QUESTIONS, SEED = 100, 2002
SINCE = "2002-10-01"


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, RestCaller]]:
    folder = tmp_path_factory.mktemp("owner")
    site = Site(folder)
    run(site, "import", str(mailbox().path), str(statement().path))
    tokens = {
        "mail": site.grant("mail", "--source", "mail", "--since", SINCE)[0],
        "bank": site.grant("bank", "--source", "bank")[0],
    }
    with site.serving():
        found = {source: RestCaller(site.origin, token) for source, token in tokens.items()}
        yield found
        for caller in found.values():
            caller.close()
    rmtree(folder)  # strangers' mail, in which anything may stand


def records(caller: RestCaller, stream: str) -> list[dict[str, Any]]:
    page = caller.get(f"/v1/streams/{stream}/records", [("limit", "100")])
    return [record["data"] for record in page["data"]]


def test_no_question_is_answered_by_nothing(callers: dict[str, RestCaller]) -> None:
    archive = archive_of(
        records(callers["mail"], "messages"), records(callers["bank"], "transactions")
    )
    for question in natural_questions(archive, QUESTIONS, SEED):
        answer = callers["mail"].get("/v1/search", [("q", question), ("limit", "3")])
        assert answer["data"] or answer["meta"].get("near"), question
