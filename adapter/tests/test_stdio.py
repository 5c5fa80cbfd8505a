"""Until the kind of a credential is known, nothing but the catalog is read."""

import anyio
import pytest

from adapter.tests.fake_rs import Answer, FakeRs, Request, error_answer
from adapter.tests.seed import world
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import FixedBearer, RsPort, RsUnreachable
from pdpp_mcp_server.stdio import CheckedPort, KindCheck, ServerMetadata

pytestmark = pytest.mark.anyio
records = ("v1", "streams", "messages", "records")
schema = ("v1", "schema")


class Ended(Exception):
    pass


def refuse_owner() -> None:
    raise Ended


def checked(rs: FakeRs) -> CheckedPort:
    client = RsClient(InnerApplication(rs), "http://127.0.0.1:7662", FixedBearer("tok"), "0")
    return CheckedPort(client.port("query_records"), KindCheck(False, refuse_owner))


def refuse_the_view(request: Request) -> Answer | None:
    compact = request.path == schema and "view" in request.names
    return error_answer(400, "invalid_request", param="view") if compact else None


async def test_the_kind_is_asked_once() -> None:
    rs = world()
    port = checked(rs)
    for _ in range(2):
        assert (await port.get(records)).ok
    assert rs.paths == [schema, records, records]


async def test_two_first_reads_ask_once() -> None:
    rs = world()
    port = checked(rs)
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(port.get, records)
    assert rs.paths == [schema, records, records]


async def test_a_server_without_the_compact_view_is_asked_in_full() -> None:
    rs = world()
    rs.script = refuse_the_view
    assert (await checked(rs).get(records)).ok
    assert rs.paths == [schema, schema, records]
    assert rs.requests[1].query == ()


@pytest.mark.parametrize("script", [None, refuse_the_view])
async def test_an_owner_is_refused_before_a_record_is_read(script: object) -> None:
    rs = world()
    rs.kind, rs.script = "owner", script  # type: ignore[assignment]
    with pytest.raises(Ended):
        await checked(rs).get(records)
    assert set(rs.paths) == {schema}


async def test_a_refused_question_is_the_answer_and_is_asked_again() -> None:
    rs = world()
    rs.script = lambda _: error_answer(401, "invalid_token")
    port = checked(rs)
    assert (await port.get(records)).status == 401
    assert rs.paths == [schema]
    rs.script = None
    assert (await port.get(records)).ok
    assert rs.paths == [schema, schema, records]


async def test_an_unreachable_server_is_asked_again() -> None:
    class Reviving:
        def __init__(self, port: RsPort) -> None:
            self.port = port
            self.is_gone = True

        async def get(
            self, path: object, query: object = (), *, max_bytes: object = None
        ) -> object:
            if self.is_gone:
                raise RsUnreachable
            return await self.port.get(path, query)  # type: ignore[arg-type]

    rs = world()
    inner = checked(rs)
    reviving = Reviving(inner.port)
    port = CheckedPort(reviving, inner.check)  # type: ignore[arg-type]
    with pytest.raises(RsUnreachable):
        await port.get(records)
    reviving.is_gone = False
    assert (await port.get(records)).ok
    assert rs.paths == [schema, records]


NONE: frozenset[str] = frozenset()
NAMES_IT = Answer(200, {"pdpp_read_capabilities": ["page_size", "unheard_of", 7]})
metadata = (".well-known", "oauth-protected-resource")


def metadata_of(rs: FakeRs) -> ServerMetadata:
    client = RsClient(InnerApplication(rs), "http://127.0.0.1:7662", FixedBearer("tok"), "0")
    return ServerMetadata(client.port("metadata"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (NAMES_IT, frozenset({"page_size", "unheard_of"})),
        (Answer(200, {"pdpp_discovery_hints": {"page_size": {}}}), NONE),
        (error_answer(404, "not_found"), NONE),
    ],
)
async def test_the_metadata_say_once_what_the_server_takes(
    answer: Answer, words: frozenset[str]
) -> None:
    rs = world()
    rs.script = lambda _: answer
    known = metadata_of(rs)
    assert [await known.capabilities() for _ in range(2)] == [words, words]
    assert rs.paths == [metadata]


async def test_metadata_that_cannot_be_read_are_asked_for_again() -> None:
    rs = world()
    rs.script = lambda _: Answer(200, None, content=b"{")
    known = metadata_of(rs)
    assert await known.capabilities() == set()
    rs.script = lambda _: NAMES_IT
    assert "page_size" in await known.capabilities()
