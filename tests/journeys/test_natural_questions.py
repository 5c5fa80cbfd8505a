"""A hundred questions as people type them: none is answered by nothing at all, at any door."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from shutil import rmtree
from typing import Any

import pytest

from bench.clients import HostedCaller, RestCaller
from bench.samples import mailbox, statement
from bench.site import Site
from demo.__main__ import Home, selection
from demo.story import Story
from tests.journeys.natural_questions import archive_of, natural_questions
from tests.journeys.test_attachments import run

QUESTIONS, SEED = 100, 2002
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Doors:
    """Where the agent of the demo asks: it has a package of grants for mail and payments."""

    rest: RestCaller
    hosted: HostedCaller


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Generator[Doors]:
    folder = tmp_path_factory.mktemp("owner")
    site = Site(folder)
    run(site, "import", str(mailbox().path), str(statement().path))
    asked = selection(Home(folder, site.port, Story(), ()))
    token = site.grant("demo", "--from", str(asked))[0]
    with site.serving():
        found = Doors(RestCaller(site.origin, token), HostedCaller(site.origin, token))
        yield found
        found.rest.close()
        found.hosted.close()
    rmtree(folder)  # strangers' mail, in which anything may stand


def records(rest: RestCaller, stream: str) -> list[dict[str, Any]]:
    [connector] = rest.get("/v1/schema", [("stream", stream)])["connectors"]
    [connection] = connector["streams"][0]["granted_connections"]
    asked = [("limit", "100"), ("connection_id", connection["connection_id"])]
    page = rest.get(f"/v1/streams/{stream}/records", asked)
    return [record["data"] for record in page["data"]]


@pytest.mark.long
def test_no_question_is_answered_by_nothing(doors: Doors) -> None:
    archive = archive_of(records(doors.rest, "messages"), records(doors.rest, "transactions"))
    relaxed, suggested = 0, 0
    for question in natural_questions(archive, QUESTIONS, SEED):
        answer = doors.rest.get("/v1/search", [("q", question), ("limit", str(SHOWN))])
        hits, meta = answer["data"], answer["meta"]
        assert hits or meta.get("near"), question
        told = doors.hosted.call("search", {"query": question, "limit": SHOWN})
        faces = told["structuredContent"], told["content"][0]["text"]
        assert_both_say_it(faces, hits, meta, question)
        relaxed += "relaxed" in meta
        suggested += "near" in meta
    assert relaxed > QUESTIONS / 4
    assert suggested > QUESTIONS / 10


def assert_both_say_it(
    faces: tuple[dict[str, Any], str], hits: list[Any], meta: dict[str, Any], question: str
) -> None:
    """The hits, what was relaxed and what is near, in the structured face and in the text."""
    structured, text = faces
    outside, _, fenced = text.partition("\nBEGIN ")
    keys = [each["record_key"] for each in hits]
    shown = [result["id"] for result in structured["results"]]
    assert [each.rpartition(":")[2] for each in shown] == keys, question
    assert all(each in text for each in shown), question
    assert structured["data"]["meta"].get("relaxed") == meta.get("relaxed"), question
    if "relaxed" in meta:
        head = text.splitlines()[0]
        count = meta["relaxed"]["exact_count"]
        assert (f"with_all_words={count};" if hits else "nothing matches") in head, question
        assert all(word in outside for word in meta["relaxed"].get("absent", ())), question
    near = [row["value"] for row in meta.get("near", ())]
    assert [row["value"] for row in structured.get("near", ())] == near, question
    assert all(each in fenced for each in near), question
