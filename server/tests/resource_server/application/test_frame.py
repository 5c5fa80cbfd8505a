import re
import threading
from collections.abc import Iterator, Mapping

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from starlette.types import Message

from pdpp_kernel.declaration import Semantics, Stream
from pdpp_kernel.errors import GrantRevoked, StorageUnavailable
from personal_server.domain.authority import ReadableSource, SourceId
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.grant import Resolved
from personal_server.reading.identification import Identified
from personal_server.reading.tokens import TokenState
from personal_server.resource_server.quotas import LimitRules
from personal_server.storage.ports.snapshots import PastBudget
from personal_server.web.call_capacity import Capacity
from personal_server.web.parameters import page_limit
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import BodyRule, Route, Tokens
from server.tests.resource_server.conftest import Bench, MakeBench, client_authority

pytestmark = pytest.mark.anyio

STREAM = Stream("entries", Semantics.MUTABLE, "Entries", {}, ("id",), {})
SOURCE = ReadableSource(
    "grt_1", SourceId("connector", "https://x.example"), "journal", "cin_1", None, STREAM, ("id",)
)


def echo(request: Request) -> Reply:
    body = {"path": dict(request.path), "limit": request.parameters.integers.get("limit")}
    return Reply(body, disclosed=[Disclosed(SOURCE, ("id",), 3)])


def explode(request: Request) -> Reply:
    raise RuntimeError("a marker that must not leak")


def large(request: Request) -> Reply:
    return Reply({"text": "a" * 5_000})


def stream(request: Request) -> Reply:
    def chunks() -> Iterator[bytes]:
        yield b"one "
        yield b"two"

    return Reply(chunks=chunks(), length_bytes=7, content_type="application/octet-stream")


def taken(request: Request) -> Reply:
    return Reply({"size": len(request.body)}, status=201)


READ = Route(
    "GET", "/v1/echo/{stream}", echo, "", "0", parameters=(page_limit(25, 100),), cors=True
)
ROUTES = (
    READ,
    Route("GET", "/v1/explode", explode, "", "0"),
    Route("GET", "/v1/large", large, "", "0", etag=True),
    Route("GET", "/v1/stream", stream, "", "0"),
    Route("GET", "/v1/open", large, "", "0", tokens=Tokens.NONE),
    Route("POST", "/v1/taken", taken, "", "0", tokens=Tokens.OWNER, body=BodyRule(limit_bytes=10)),
)


async def test_every_answer_carries_the_fixed_headers(make_bench: MakeBench) -> None:
    async with make_bench(*ROUTES).client() as client:
        for path in ("/v1/echo/a", "/v1/nowhere", "/v1/explode", "/v1/echo/a?color=1"):
            answer = await client.get(path)
            assert answer.headers["request-id"] == answer.headers["x-request-id"]
            assert re.fullmatch("req_[0-9a-f]{24}", answer.headers["request-id"])
            assert answer.headers["pdpp-version"] == "2026-04-06"
            assert answer.headers["content-type"] == "application/json; charset=utf-8"
            assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_good_request_id_is_echoed_and_a_bad_one_ignored(make_bench: MakeBench) -> None:
    async with make_bench(*ROUTES).client() as client:
        both = {"Request-Id": "mine:1", "X-Request-Id": "other"}
        assert (await client.get("/v1/echo/a", headers=both)).headers["x-request-id"] == "mine:1"
        bad = await client.get("/v1/echo/a", headers={"X-Request-Id": "a b"})
        assert bad.headers["request-id"].startswith("req_")


@pytest.mark.parametrize(
    ("method", "path", "token", "headers", "code"),
    [
        ("GET", "/v1/nowhere", None, {"PDPP-Version": "1"}, "not_found"),
        ("POST", "/v1/echo/a", None, {"PDPP-Version": "1"}, "method_not_allowed"),
        ("GET", "/v1/echo/a?x=1", None, {"PDPP-Version": "1"}, "unsupported_version"),
        ("GET", "/v1/echo/a?x=1", None, {}, "authentication_error"),
        ("GET", "/v1/echo/a?x=1", "nobody", {}, "invalid_token"),
        ("GET", "/v1/echo/a?x=1", "revoked", {}, "grant_revoked"),
        ("POST", "/v1/taken?x=1", "client", {}, "permission_error"),
        ("GET", "/v1/echo/a?x=1", "client", {}, "invalid_request"),
        ("POST", "/v1/taken", "owner", {}, "unsupported_media_type"),
    ],
)
async def test_the_first_failing_step_answers(
    make_bench: MakeBench,
    method: str,
    path: str,
    token: str | None,
    headers: dict[str, str],
    code: str,
) -> None:
    bench = make_bench(*ROUTES)
    bench.tokens["revoked"] = Identified(client_authority(), GrantRevoked("The owner ended it."))
    async with bench.client(token) as client:
        answer = await client.request(method, path, headers=headers)
    assert answer.json()["error"]["code"] == code


async def test_a_401_challenges_and_says_what_to_do(make_bench: MakeBench) -> None:
    async with make_bench(*ROUTES).client("nobody") as client:
        answer = await client.get("/v1/echo/a")
    challenge = answer.headers["www-authenticate"]
    url = "http://127.0.0.1:7662/.well-known/oauth-protected-resource"
    assert challenge.startswith(f'Bearer resource_metadata="{url}", scope="pdpp:read"')
    assert 'error="invalid_token"' in challenge
    assert answer.json()["error"]["resource_metadata"] == url
    assert answer.json()["error"]["next_step"]


async def test_405_names_the_methods(make_bench: MakeBench) -> None:
    async with make_bench(*ROUTES).client() as client:
        assert (await client.put("/v1/echo/a")).headers["allow"] == "GET, HEAD, OPTIONS"


async def test_a_defect_says_nothing_of_itself(
    make_bench: MakeBench, caplog: pytest.LogCaptureFixture
) -> None:
    async with make_bench(*ROUTES).client() as client:
        answer = await client.get("/v1/explode")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert "marker" not in answer.text + caplog.text
    assert "RuntimeError" in caplog.text


async def test_head_has_the_headers_of_get_and_no_body(make_bench: MakeBench) -> None:
    async with make_bench(*ROUTES).client() as client:
        plain = {"Accept-Encoding": "identity"}
        got, head = (
            await client.get("/v1/large", headers=plain),
            await client.head("/v1/large", headers=plain),
        )
    assert head.content == b""
    assert head.headers["content-length"] == got.headers["content-length"]
    assert head.headers["etag"] == got.headers["etag"]


async def test_a_known_validator_answers_304_without_body(make_bench: MakeBench) -> None:
    async with make_bench(*ROUTES).client() as client:
        etag = (await client.get("/v1/large")).headers["etag"]
        answer = await client.get("/v1/large", headers={"If-None-Match": f'"x", {etag}'})
    assert answer.status_code == 304
    assert answer.content == b""
    assert "content-type" not in answer.headers


async def test_large_bodies_are_compressed_where_accepted(make_bench: MakeBench) -> None:
    async with make_bench(*ROUTES).client() as client:
        zipped = await client.get("/v1/large", headers={"Accept-Encoding": "br, gzip;q=0.5"})
        plain = await client.get("/v1/large", headers={"Accept-Encoding": "gzip;q=0"})
        small = await client.get("/v1/echo/a", headers={"Accept-Encoding": "gzip"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert zipped.json() == plain.json()
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in small.headers


async def test_browsers_may_read_but_not_write(make_bench: MakeBench) -> None:
    async with make_bench(*ROUTES).client() as client:
        preflight = await client.options("/v1/echo/a")
        refused = await client.options("/v1/taken")
        read = await client.get("/v1/echo/a")
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-methods"] == "GET"
    assert refused.status_code == 405
    assert read.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in refused.headers


async def test_a_stream_arrives_whole(make_bench: MakeBench) -> None:
    async with make_bench(*ROUTES).client() as client:
        answer = await client.get("/v1/stream")
    assert answer.content == b"one two"
    assert answer.headers["content-length"] == "7"


async def test_a_caller_who_hangs_up_ends_the_stream(make_bench: MakeBench) -> None:
    closed = threading.Event()

    def endless(request: Request) -> Reply:
        def chunks() -> Iterator[bytes]:
            try:
                while True:
                    yield b"more"
            finally:
                closed.set()

        return Reply(chunks=chunks(), content_type="application/octet-stream")

    sent = 0

    async def receive() -> Message:
        while sent < 3:
            await anyio.lowlevel.checkpoint()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal sent
        sent += 1

    app = make_bench(Route("GET", "/v1/endless", endless, "", "0")).app()
    headers = [(b"authorization", b"Bearer client")]
    scope = {"type": "http", "method": "GET", "path": "/v1/endless", "headers": headers}
    await app(scope, receive, send)
    assert closed.is_set()


async def test_a_body_over_its_limit_is_refused(make_bench: MakeBench) -> None:
    json_type = {"Content-Type": "application/json"}
    async with make_bench(*ROUTES).client("owner") as client:
        refused = await client.post("/v1/taken", content=b"x" * 11, headers=json_type)
        taken = await client.post("/v1/taken", content=b"x" * 10, headers=json_type)
    assert refused.json()["error"]["code"] == "resource_limit"
    assert refused.status_code == 413
    assert taken.json() == {"size": 10}


async def test_a_read_enters_the_log_with_names_and_counts(make_bench: MakeBench) -> None:
    bench = make_bench(*ROUTES)
    async with bench.client() as client:
        answer = await client.get("/v1/echo/entries", headers={"PDPP-Tool": "query_records"})
        await client.get("/v1/echo/entries?color=red")
    served, denied = bench.log.entries
    assert (served.outcome, served.connection_id, served.record_count) == ("served", "cin_1", 3)
    assert (served.channel, served.tool) == ("mcp", "query_records")
    assert served.route == "GET /v1/echo/{stream}"
    assert served.size_bytes == len(answer.content)
    assert (denied.outcome, denied.error_code) == ("denied", "invalid_request")
    assert (denied.channel, denied.stream, denied.record_count) == ("rest", "entries", 0)


async def test_clients_are_not_served_while_the_log_cannot_be_written(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(*ROUTES)
    bench.log.failure = StorageUnavailable("The disclosure log cannot be written.")
    async with bench.client() as client:
        answer = await client.get("/v1/echo/a")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"


async def test_the_bucket_empties_refuses_and_fills_again(make_bench: MakeBench) -> None:
    bench = make_bench(*ROUTES, rules=LimitRules(units_per_second=1, burst=2))
    async with bench.client() as client:
        first = await client.get("/v1/echo/a")
        assert first.headers["ratelimit-limit"] == "2"
        assert first.headers["ratelimit-remaining"] == "1"
        await client.get("/v1/echo/a")
        refused = await client.get("/v1/echo/a")
        assert refused.status_code == 429
        assert refused.json()["error"]["limit"] == "requests"
        assert refused.headers["retry-after"] == str(refused.json()["error"]["retry_after_seconds"])
        bench.clock.advance(1)
        assert (await client.get("/v1/echo/a")).status_code == 200


async def test_a_quota_refuses_before_anything_is_returned(make_bench: MakeBench) -> None:
    bench = make_bench(*ROUTES, rules=LimitRules(records_per_day=5))
    async with bench.client() as client:
        assert (await client.get("/v1/echo/a")).status_code == 200
        refused = await client.get("/v1/echo/a")
    assert refused.json()["error"]["code"] == "quota_exceeded"
    assert refused.json()["error"]["limit"] == "records"
    assert [entry.outcome for entry in bench.log.entries] == ["served", "denied"]


async def test_one_grant_has_a_bounded_number_of_calls_in_flight(make_bench: MakeBench) -> None:
    release = threading.Event()

    def slow(request: Request) -> Reply:
        release.wait(10)
        return Reply({})

    bench = make_bench(Route("GET", "/v1/slow", slow, "", "0"), rules=LimitRules(in_flight=2))
    statuses: list[int] = []

    async with bench.client() as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            answer = await client.get("/v1/slow")
            statuses.append(answer.status_code)
            release.set()

        for _ in range(3):
            tasks.start_soon(ask)
    assert sorted(statuses) == [200, 200, 429]


async def test_a_call_that_had_to_wait_takes_one_place_in_flight(make_bench: MakeBench) -> None:
    begun, release = threading.Event(), threading.Event()

    def slow(request: Request) -> Reply:
        begun.set()
        release.wait(10)
        return Reply({})

    route = Route("GET", "/v1/slow", slow, "", "0")
    bench = make_bench(route, rules=LimitRules(in_flight=2), capacity=Capacity(at_once=1))
    statuses: list[int] = []

    async with bench.client() as client:

        async def ask() -> None:
            statuses.append((await client.get("/v1/slow")).status_code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.to_thread.run_sync(begun.wait, 10)
            tasks.start_soon(ask)
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            release.set()
        for _ in range(2):
            await ask()
    assert statuses == [200, 200, 200, 200]


async def test_writes_that_wait_do_not_hold_up_reads(make_bench: MakeBench) -> None:
    release = threading.Event()

    def slow(request: Request) -> Reply:
        release.wait(10)
        return Reply({}, status=201)

    write = Route("POST", "/v1/slow", slow, "", "0", tokens=Tokens.OWNER)
    bench = make_bench(write, READ, capacity=Capacity(at_once=1))
    async with bench.client("owner") as client, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(client.post, "/v1/slow")
        read = await client.get("/v1/echo/a")
        assert read.status_code == 200
        release.set()


async def test_a_full_queue_refuses_instead_of_growing(make_bench: MakeBench) -> None:
    bench = make_bench(*ROUTES, capacity=Capacity(at_once=0, waiting=0))
    async with bench.client() as client:
        answer = await client.get("/v1/echo/a")
    assert answer.json()["error"]["code"] == "storage_unavailable"
    assert "retry-after" in answer.headers


async def test_a_brief_read_is_answered_where_it_comes_in_or_begun_anew_in_a_thread(
    make_bench: MakeBench,
) -> None:
    threads: list[int] = []

    def answer(request: Request) -> Reply:
        threads.append(threading.get_ident())
        if request.raw_query and threading.get_ident() == here:
            raise PastBudget
        return Reply({}, disclosed=[Disclosed(SOURCE, ("id",), 1)])

    here = threading.get_ident()
    route = Route(
        "GET",
        "/v1/brief",
        answer,
        "",
        "0",
        parameters=(page_limit(25, 100),),
        is_brief=lambda _: True,
    )
    bench = make_bench(route, rules=LimitRules(units_per_second=1, burst=3, in_flight=1))
    async with bench.client() as client:
        # nothing has to be looked up for who has neither budget nor grant
        for path in ("/v1/brief", "/v1/brief", "/v1/brief?limit=3"):
            assert (await client.get(path)).status_code == 200
        assert (await client.get("/v1/brief")).status_code == 429
    assert [thread == here for thread in threads] == [True, True, True, False]
    assert len(bench.log.entries) == 4


async def answered(bench: Bench, state: Mapping[str, object], token: str) -> int:
    """The status of a read with what somebody before us wrote into the scope."""
    statuses: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        statuses.append(message.get("status", 0))

    headers = [(b"authorization", f"Bearer {token}".encode())]
    path = "/v1/echo/a"
    scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "state": state}
    await bench.app()(scope, receive, send)
    return statuses[0]


async def test_what_was_found_out_about_the_token_of_a_call_is_not_asked_again(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(*ROUTES)
    resolved = Resolved("client", "sub_1", "planner", "client", "http://here", 1)
    known = {"token_states": {"pdpp_at_1": TokenState(resolved)}}
    assert await answered(bench, known, "pdpp_at_1") == 200
    assert await answered(bench, known, "pdpp_at_2") == 401
    assert await answered(bench, {"token_states": {"pdpp_at_1": "ours"}}, "pdpp_at_1") == 401
    assert bench.bearers == [TokenState(resolved), "pdpp_at_2", "pdpp_at_1"]
