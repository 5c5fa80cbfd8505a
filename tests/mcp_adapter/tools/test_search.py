import pytest

from tests.mcp_adapter.asking import ask
from tests.mcp_adapter.seed import world

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


@pytest.mark.parametrize("mode", ["lexical", "semantic", "hybrid"])
async def test_a_mode_is_a_route(mode: str) -> None:
    rs = world()
    await ask(rs, "search", {"query": "x", "mode": mode})
    expected = ("v1", "search") if mode == "lexical" else ("v1", "search", mode)
    assert rs.paths == [expected]
    assert rs.requests[0].values("q") == ["x"]
