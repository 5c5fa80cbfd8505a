"""Search by meaning over the wire: from records and a model to hits.

Source: docs/contract/resource-server.md 11.6.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.stored import (
    Batch,
    RecordWrite,
)
from personal_server.semantics.chosen import ChosenModel, write_choice
from personal_server.semantics.embedder import Embedder
from server.tests.app.whole import Whole, whole
from server.tests.console.household import HOME, mail_request
from server.tests.semantics.tiny import TinyEmbedder

CHOSEN = ChosenModel("folder", "tiny", "a tiny model", "none")
TEXTS = {
    "m1": ("Our new puppy", "It chews everything it finds."),
    "m2": ("Invoice 12", "Please pay within a month."),
    "m3": ("Weather", "Tomorrow it is sunny. A dog barked."),
}


class Apart(TinyEmbedder):
    """Queries lie across all texts."""

    def embed(self, texts: Sequence[str], *, is_query: bool) -> list[bytes]:
        return [bytes([1, 0] if is_query else [0, 1]) * 32 for _ in texts]


def tiny(_chosen: ChosenModel, _is_for_queries: bool) -> Embedder:
    return TinyEmbedder()


@pytest.fixture
def site(tmp_path: Path) -> Generator[Whole]:
    write_choice(tmp_path / "data", CHOSEN)
    (tmp_path / "data").chmod(0o700)
    with whole(tmp_path, embedder=tiny) as made:
        keep(made, TEXTS)
        yield made


@pytest.fixture
def token(site: Whole) -> str:
    return site.connect(mail_request())["access_token"]


def keep(site: Whole, texts: dict[str, tuple[str, str]], at: str = "2026-03-01T10:00:00Z") -> None:
    declared = parse_declaration(MAIL).streams["messages"]
    rows: list[dict[str, Any]] = [
        {
            "id": key,
            "subject": subject,
            "body": body,
            "sent_at": at,
            "received_at": at,
        }
        for key, (subject, body) in texts.items()
    ]
    writes = [RecordWrite(row["id"], row, site.clock()) for row in rows]
    site.server.stores.records.commit(Batch(HOME, declared, writes, site.clock()))


def embed(site: Whole, rounds: int = 20) -> None:
    assert site.meaning is not None
    for _ in range(rounds):
        site.meaning.work()


def search(site: Whole, token: str, q: str, path: str = "", **more: str) -> dict[str, Any]:
    page = site.call(f"/v1/search{path}?{urlencode({'q': q, **more})}", token)
    assert page.status == 200, page.text
    return site.body(page)


def test_it_goes_by_words_until_something_is_embedded(site: Whole, token: str) -> None:
    assert "mode" not in search(site, token, "dog")["meta"]["recall"]
    refused = site.call("/v1/search?q=dog&mode=meaning", token)
    assert refused.status == 400
    assert site.body(refused)["error"]["code"] == "unsupported_search_mode"
    embed(site)
    found = search(site, token, "dog")
    assert found["meta"]["recall"]["mode"] == "hybrid"
    assert found["meta"]["recall"]["unembedded_record_count"] == 0


def test_the_schema_says_what_can_be_found_by_meaning(site: Whole, token: str) -> None:
    def row() -> dict[str, Any]:
        (found,) = site.body(site.call("/v1/schema?view=compact&stream=messages", token))[
            "connectors"
        ][0]["streams"]
        return found

    before = row()
    assert before["search"] == {
        "modes": ["lexical"],
        "lexical_fields": before["search"]["lexical_fields"],
        "semantic_fields": [],
    }
    assert "sem=unusable:mode_not_available" in before["field_capabilities"]["body"]
    embed(site, rounds=1)
    keep(site, {"m4": ("New", "It was just written.")})
    meanwhile = row()["search"]
    assert meanwhile["modes"] == ["lexical", "semantic", "hybrid"]
    assert 0 < meanwhile["embedded_percent"] < 100
    embed(site)
    after = row()
    assert after["search"]["semantic_fields"] == ["subject", "body"]
    assert "embedded_percent" not in after["search"]
    assert after["field_capabilities"]["body"].endswith("sem")


def test_the_metadata_say_that_there_is_a_model(site: Whole) -> None:
    told = site.body(site.call("/.well-known/oauth-protected-resource", None))["capabilities"]
    assert told["hybrid_retrieval"] == {"supported": True, "endpoint": "/v1/search/hybrid"}


def test_a_hit_by_meaning_opens_at_its_passage(site: Whole, token: str) -> None:
    embed(site)
    found = search(site, token, "dog", "/semantic")
    hit = found["data"][0]
    assert hit["record_id"] == "m1"
    assert hit["retrieval_mode"] == "semantic"
    (excerpt,) = hit["evidence_excerpts"]
    assert excerpt["provenance"] == "semantic_match"
    assert excerpt["match_ranges"] == []
    assert excerpt["preview_text"] == "Our new puppy"


def test_both_together_join_what_each_finds(site: Whole, token: str) -> None:
    embed(site)
    found = search(site, token, "dog", mode="hybrid")
    hits = {hit["record_id"]: hit for hit in found["data"]}
    assert hits["m3"]["retrieval_sources"] == ["lexical", "semantic"]
    assert hits["m1"]["retrieval_sources"] == ["semantic"]
    assert found["data"][0]["record_id"] == "m3"
    assert {hit["retrieval_mode"] for hit in found["data"]} == {"hybrid"}
    (excerpt,) = hits["m3"]["evidence_excerpts"]
    assert excerpt["provenance"] == "lexical_match"


def test_what_is_said_strictly_stays_strict(site: Whole, token: str) -> None:
    embed(site)
    assert "mode" not in search(site, token, '"dog"')["meta"]["recall"]
    found = search(site, token, 'puppy "dog barked"', mode="hybrid")
    assert [hit["record_id"] for hit in found["data"]] == ["m3"]
    without = search(site, token, "dog -barked", mode="hybrid")
    assert "m3" not in [hit["record_id"] for hit in without["data"]]


def test_what_has_nothing_to_do_with_the_query_is_no_hit(tmp_path: Path) -> None:
    write_choice(tmp_path / "data", CHOSEN)
    (tmp_path / "data").chmod(0o700)
    with whole(tmp_path, embedder=lambda _chosen, _is_for_queries: Apart()) as made:
        embed(made)
        token = made.connect(mail_request())["access_token"]
        assert search(made, token, "quarks", mode="meaning")["data"] == []


def test_pages_laid_end_to_end_are_the_ranking(site: Whole, token: str) -> None:
    embed(site)
    whole_list = [h["record_id"] for h in search(site, token, "dog", limit="100")["data"]]
    paged: list[str] = []
    more: dict[str, str] = {}
    while True:
        page = search(site, token, "dog", limit="7", **more)
        paged += [hit["record_id"] for hit in page["data"]]
        if not page["has_more"]:
            break
        more = {"cursor": page["next_cursor"]}
    assert sorted(paged) == sorted(whole_list)
    assert len(paged) == len(set(paged))


HIDDEN = "Our puppy, a dog"
SHOWN = {"fields": ["id", "sent_at", "subject"], "time_range": {"since": "2026-02-01T00:00:00Z"}}


def test_two_worlds_that_differ_in_what_is_hidden_answer_with_the_same_bytes(
    tmp_path: Path,
) -> None:
    """In one of them a hidden field and hidden records are the nearest of all."""
    answers: list[list[str]] = []
    for name, body in (("one", HIDDEN), ("other", "Nothing of that")):
        folder = tmp_path / name
        write_choice(folder / "data", CHOSEN)
        (folder / "data").chmod(0o700)
        with whole(folder, embedder=tiny) as made:
            keep(made, {"m1": ("Weather", body), "m2": ("Invoice", body)})
            keep(made, {"m3": (body, body)}, at="2026-01-01T10:00:00Z")
            embed(made)
            token = made.connect(mail_request(**SHOWN))["access_token"]
            queries = ("q=puppy", "q=dog&mode=hybrid", "q=puppy+-dog&mode=meaning", "q=weather")
            answers.append([_bytes(made, token, query) for query in queries])
    assert answers[0] == answers[1]
    assert '"semantic_match"' in answers[0][0]
    assert HIDDEN not in "".join(answers[0])


def _bytes(site: Whole, token: str, query: str) -> str:
    page = site.call(f"/v1/search?limit=100&{query}", token)
    assert page.status == 200, page.text
    return page.text
