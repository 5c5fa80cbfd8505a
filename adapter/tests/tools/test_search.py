import pytest
from msgspec.structs import replace

from adapter.tests.asking import ask, call_over
from adapter.tests.fake_wire import Answer
from adapter.tests.reader import hits_of
from adapter.tests.seed import world
from pdpp_mcp_server.calls import those_of_this_program
from pdpp_mcp_server.rs_client.json_values import Json, compact
from pdpp_mcp_server.tools.search import search

pytestmark = pytest.mark.anyio


async def test_words_are_needed_once() -> None:
    rs = world()
    for arguments in ({"query": "  "}, {"q": " "}):
        error = (await ask(rs, "search", arguments)).structured["error"]
        assert (error["code"], error["param"]) == ("invalid_arguments", "query")
    differing = (await ask(rs, "search", {"query": "a", "q": "b"})).structured["error"]
    assert (differing["code"], differing["param"]) == ("invalid_arguments", "q")
    assert differing["next_call"]["arguments"] == {"query": "a"}
    assert rs.requests == []
    assert not (await ask(rs, "search", {"query": "invoice", "q": "invoice"})).is_error


@pytest.mark.parametrize("mode", ["auto", "lexical", "semantic", "hybrid"])
async def test_a_mode_is_a_route(mode: str) -> None:
    rs = world()
    await ask(rs, "search", {"query": "x", "mode": mode})
    expected = ("v1", "search", mode) if mode in ("semantic", "hybrid") else ("v1", "search")
    assert rs.requests[0].values("mode") == []
    assert rs.paths == [expected]
    assert rs.requests[0].values("q") == ["x"]


async def test_a_mode_that_no_server_has_is_refused_without_a_call() -> None:
    rs = world()
    error = (await ask(rs, "search", {"query": "x", "mode": "magic"})).structured["error"]
    assert (error["code"], error["param"]) == ("invalid_arguments", "mode")
    assert error["expected"] == "one of auto, lexical, semantic, hybrid"
    assert error["next_call"]["arguments"] == {"query": "x"}
    assert rs.requests == []


def _hit(number: int, **members: object) -> Json:
    """A lean hit as our server sends it to who counts characters."""
    text = f"{number} invoice about many things"
    return {
        "object": "search_result",
        "stream": "messages",
        "record_id": f"m{number}",
        "connection_id": "cin_a",
        "connector_key": "gmail",
        "emitted_at": "2026-07-01T08:00:00.000Z",
        "title": f"Invoice {number}",
        "matched_fields": ["body"],
        "retrieval_mode": "lexical",
        "evidence_excerpts": [
            {
                "field_path": "body",
                "preview_text": text,
                "start_chars": 40,
                "match_ranges": [[42, 49]],
                "total_chars": 900,
            }
        ],
        **members,
    }


async def test_of_many_hits_nothing_stands_twice() -> None:
    rs = world()
    hits = [_hit(1), _hit(2), _hit(3, matched_fields=["body", "subject"]), *map(_hit, range(4, 8))]
    links = {"self": "/v1/search?q=invoice", "next": None}
    body = {"object": "list", "data": hits, "has_more": False, "links": links}
    rs.script = lambda _: Answer(200, body)
    found = await ask(rs, "search", {"query": "invoice"}, is_ours=True)
    page, data = found.structured["page"], found.structured["data"]["data"]
    assert page == {
        "object": "search_result",
        "stream": "messages",
        "connector_key": "gmail",
        "emitted_at": "2026-07-01T08:00:00.000Z",
        "retrieval_mode": "lexical",
        "field_path": "body",
    }
    assert all(hit.keys() == {"evidence_excerpts"} for hit in data)
    for sent, shown in zip(hits, hits_of(found.structured), strict=True):
        (excerpt,) = sent["evidence_excerpts"]
        del excerpt["match_ranges"], sent["matched_fields"]
        assert {**sent, "id": f"cin_a/messages:{sent['record_id']}"}.items() <= shown.items()
    assert "links" not in found.structured["data"]
    first, *others = found.structured["results"]
    assert first["content_ladder"][0]["read"]["arguments"]["offset_chars"] == 40
    assert first["content_ladder"][0]["uri"].startswith("pdpp://field-window/")
    assert all("content_ladder" not in other for other in others)
    cuts = [line for line in found.text.split("\n") if line.startswith("cut: ")]
    assert cuts[0].startswith("cut: body 27/900 read_record_field {")
    assert cuts[1:] == ["cut: body 27/900 from 40"] * 6
    assert "<mark>invoice</mark>" in found.text
    assert found.text.split("\n")[-1].startswith("use: read_record_field {")


async def test_of_many_hits_an_excerpt_that_is_the_title_stands_once() -> None:
    rs = world()
    excerpt = {"field_path": "payee", "preview_text": "Grocer", "start_chars": 0, "total_chars": 6}
    longer = {**excerpt, "field_path": "memo", "total_chars": 60}
    same = [_hit(n, title="Grocer", evidence_excerpts=[excerpt]) for n in range(1, 7)]
    hits = [*same, _hit(7, title="Grocer", evidence_excerpts=[longer])]
    rs.script = lambda _: Answer(200, {"object": "list", "data": hits, "has_more": False})
    found = await ask(rs, "search", {"query": "grocer"}, is_ours=True)
    assert found.structured["page"]["field_path"] == "payee"
    shown = [hit["evidence_excerpts"][0] for hit in found.structured["data"]["data"]]
    assert [each.get("preview_text") for each in shown] == [None] * 6 + ["Grocer"]
    assert [each.get("field_path") for each in shown] == [None] * 6 + ["memo"]
    assert [hit["evidence_excerpts"] for hit in hits_of(found.structured)] == [
        hit["evidence_excerpts"] for hit in hits
    ]


async def test_an_excerpt_that_is_the_whole_field_says_where_it_was_cut_too() -> None:
    rs = world()
    text = "invoice " * 23
    excerpt = {"field_path": "body", "preview_text": text, "start_chars": 0, "total_chars": 184}
    hits = [_hit(number, evidence_excerpts=[excerpt]) for number in range(1, 37)]
    rs.script = lambda _: Answer(200, {"object": "list", "data": hits, "has_more": False})
    found = await ask(rs, "search", {"query": "invoice", "limit": 36}, is_ours=True)
    assert len(found.structured["results"]) == 36
    cuts = [line for line in found.text.split("\n") if line.startswith("cut: ")]
    (ladder,) = (hit["content_ladder"] for hit in found.structured["results"][:1])
    assert (ladder[0]["shown_chars"], ladder[0]["total_chars"]) == (120, 184)
    assert cuts[0].startswith("cut: body 120/184 read_record_field {")
    assert cuts[1:] == ["cut: body 120/184 from 0"] * 35


async def test_of_many_hits_an_id_that_spells_nothing_keeps_its_parts() -> None:
    rs = world()
    hits = [_hit(number, record_id=f"a/{number}") for number in range(1, 8)]
    rs.script = lambda _: Answer(200, {"object": "list", "data": hits, "has_more": False})
    found = await ask(rs, "search", {"query": "invoice"}, is_ours=True)
    shown = [hit["record_id"] for hit in found.structured["data"]["data"]]
    assert shown == [hit["record_id"] for hit in hits]


async def test_while_an_index_is_made_both_faces_say_that_hits_may_be_missing() -> None:
    rs = world()
    near = [{"word": "gardn", "value": "garden", "count": 2, "searched": False}]
    recall: Json = {"complete": False, "pending_index_count": 12}
    meta: Json = {"recall": recall, "near": near}
    body: Json = {"object": "list", "data": [], "has_more": False, "meta": meta}
    rs.script = lambda _: Answer(200, body)
    found = await ask(rs, "search", {"query": "gardn"}, is_ours=True)
    (warning,) = found.structured["warnings"]
    assert warning["code"] == "index_pending"
    assert "12" in warning["message"]
    assert f"warning: index_pending {warning['message']}" in found.text.split("\n")
    recall["pending_index_count"] = 0
    known = await ask(rs, "search", {"query": "gardn"}, is_ours=True)
    assert known.structured["warnings"] == []


async def test_a_few_hits_are_the_envelope_as_it_was_sent() -> None:
    rs = world()
    body = {"object": "list", "data": [*map(_hit, range(1, 6))], "has_more": False}
    rs.script = lambda _: Answer(200, body)
    found = await ask(rs, "search", {"query": "invoice"}, is_ours=True)
    assert found.structured["data"] == body
    assert "page" not in found.structured
    ladders = [result["content_ladder"] for result in found.structured["results"]]
    assert ["uri" in entries[0] for entries in ladders] == [True, False, False, False, False]


async def test_words_alone_are_asked_for_where_the_server_would_choose() -> None:
    rs = world()
    call = replace(call_over(rs, "search"), server_capabilities=those_of_this_program)
    await search(call, {"query": "x", "mode": "lexical"})
    await search(call, {"query": "x"})
    assert [each.values("mode") for each in rs.requests] == [["words"], []]


async def test_a_hit_that_brings_more_than_a_hit_still_fits() -> None:
    hit = {
        "object": "search_result",
        "record_id": "m1",
        "stream": "messages",
        "connection_id": "cin_a",
        "title": "Invoice",
        "expanded": {
            "attachments": {"data": [{"id": f"c{n}", "text": "x" * 900} for n in range(90)]}
        },
        "thread": ["y" * 400] * 200,
    }
    rs = world()
    rs.script = lambda _: Answer(200, {"object": "list", "data": [hit, hit], "has_more": False})
    outcome = await ask(rs, "search", {"query": "invoice"})
    assert not outcome.is_error, outcome.text
    assert len(compact(outcome.structured)) <= 32_000
    result = outcome.structured["results"][0]
    assert result["id"] == "cin_a/messages:m1"
    cut = {entry["field_path"]: entry for entry in result["content_ladder"]}
    assert set(cut) == {"expanded", "thread"}
    assert all(entry["uri"].startswith("pdpp://record/") for entry in cut.values())
    assert "cut: expanded " in outcome.text


async def test_an_excerpt_of_unknown_length_claims_no_total() -> None:
    hit = {"record_id": "m1", "stream": "messages", "connection_id": "cin_a"}
    snippet = {"field": "body", "text": "the <mark>invoice</mark> is paid"}
    rs = world()
    rs.script = lambda _: Answer(200, {"data": [{**hit, "snippet": snippet}]})
    outcome = await ask(rs, "search", {"query": "invoice"})
    entry = outcome.structured["results"][0]["content_ladder"][0]
    assert entry["shown_chars"] == len("the invoice is paid")
    assert "total_chars" not in entry
    assert 'cut: body 19/unknown read_record_field {"id":"cin_a/messages:m1"' in outcome.text


async def test_a_hit_shows_one_passage_however_many_a_server_sends() -> None:
    rs = world()
    passages = [{"field_path": name, "text": f"an invoice in {name}"} for name in ("body", "note")]
    hit = {"record_id": "m1", "stream": "messages", "connection_id": "cin_a"}
    rs.script = lambda _: Answer(200, {"data": [{**hit, "evidence_excerpts": passages}]})
    outcome = await ask(rs, "search", {"query": "invoice"})
    assert [line for line in outcome.text.split("\n") if line.startswith("match ")] == [
        "match body (cut): an invoice in body"
    ]
    [entry] = outcome.structured["results"][0]["content_ladder"]
    assert entry["field_path"] == "body"
    assert entry["uri"].startswith("pdpp://field-window/")


async def test_what_was_relaxed_is_said_first_and_near_words_stay_in_the_fence() -> None:
    rs = world()
    hit = {"record_id": "m1", "stream": "messages", "connection_id": "cin_a"}
    near = {"word": "remialer", "value": "remailer\nnext: x", "count": 150, "searched": True}
    told = {"words": 5, "exact_count": 0, "least": 3, "absent": ["xyzzy"], "spelled": ["remialer"]}
    meta = {"relaxed": told, "near": [near]}
    body = {"data": [{**hit, "matched_words": ["remialer", "chain"]}], "meta": meta}
    rs.script = lambda _: Answer(200, body)
    outcome = await ask(rs, "search", {"query": "remialer chain xyzzy a b"})
    lines = outcome.text.split("\n")
    assert 'hits=1; with_all_words=0; others="at least 3 of 5 words"' in lines[0]
    begin = next(n for n, line in enumerate(lines) if line.startswith("BEGIN "))
    end = next(n for n, line in enumerate(lines) if line.startswith("END "))
    assert "absent: xyzzy (in no searched field that you may see)" in lines[:begin]
    assert "respelled: remialer (near words say what was searched instead)" in lines[:begin]
    assert "holds: chain" in lines[begin:end]
    shown = 'near 1: searched instead: remialer → "remailer\\nnext: x" (150)'
    assert shown in lines[begin:end]
    assert outcome.structured["near"] == [near]
    assert outcome.structured["next"] == []
    rs.script = lambda _: Answer(200, {"data": [], "meta": {"relaxed": {**told, "least": None}}})
    outcome = await ask(rs, "search", {"query": "xyzzy"})
    assert outcome.text.startswith("search: hits=0; nothing matches")


async def test_what_is_folded_into_a_hit_is_counted_in_both_faces() -> None:
    rs = world()
    hit = {"record_id": "m1", "stream": "messages", "connection_id": "cin_a", "duplicates": 4}
    rs.script = lambda _: Answer(200, {"data": [hit], "meta": {}})
    outcome = await ask(rs, "search", {"query": "joined"})
    [line] = [each for each in outcome.text.split("\n") if each.startswith("source: ")]
    assert line.endswith('; same_text="4 more"')
    assert outcome.structured["data"]["data"][0]["duplicates"] == 4


async def test_what_a_payment_comes_to_stands_in_both_faces() -> None:
    rs = world()
    hit = {"record_id": "m1", "stream": "messages", "connection_id": "cin_a"}
    amounts = ["-12.5 EUR", "3 E;by=x\nnext: y"]
    rs.script = lambda _: Answer(200, {"data": [{**hit, "amount": each} for each in amounts]})
    outcome = await ask(rs, "search", {"query": "coffee"})
    plain, odd = [each for each in outcome.text.split("\n") if each.startswith("source: ")]
    assert plain.endswith('; amount="-12.5 EUR"')
    assert odd.endswith('; amount="3 E;by=x next: y"')
    assert [each["amount"] for each in outcome.structured["data"]["data"]] == amounts


async def test_exact_is_sent_only_where_it_is_asked_for() -> None:
    rs = world()
    await ask(rs, "search", {"query": "invoice", "exact": True}, is_ours=True)
    assert rs.requests[-1].values("exact") == ["true"]
    await ask(rs, "search", {"query": "invoice", "exact": False}, is_ours=True)
    assert rs.requests[-1].values("exact") == []
    outcome = await ask(rs, "search", {"query": "invoice", "exact": "yes"})
    assert outcome.structured["error"]["expected"] == "true or false"
