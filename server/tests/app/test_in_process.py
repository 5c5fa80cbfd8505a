import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from pdpp_kernel.errors import InvalidToken
from personal_server.app.hosted_adapter import TokenAdmission
from personal_server.app.in_process import InProcessTransport
from personal_server.reading.tokens import TokenResolver
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.proving import bearer, unproven


@pytest.mark.anyio
async def test_the_inner_application_is_told_where_and_as_whom_its_caller_was_admitted() -> None:
    seen: list[object] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["state"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    transport = httpx2.ASGITransport(app=InProcessTransport(inner, {"pdpp_at_1": "known"}))
    async with httpx2.AsyncClient(transport=transport) as http:
        await http.get("https://me.example:8443/v1")
    known = {"pdpp_at_1": "known"}
    assert seen == [{"origin": "https://me.example:8443", "token_states": known}]


@pytest.mark.anyio
async def test_an_unknown_bearer_is_not_admitted() -> None:
    resolver = TokenResolver(MemoryAuthorizationStore("own_x"), lambda: 1, unproven())
    admission = TokenAdmission(resolver, frozenset({"http://127.0.0.1:7662"}))
    with pytest.raises(InvalidToken):
        await admission.judge(bearer("nothing"))
