import pytest

from pdpp_kernel.errors import InvalidToken
from personal_server.app.hosted_adapter import TokenAdmission
from personal_server.reading.tokens import TokenResolver
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.proving import bearer, unproven


@pytest.mark.anyio
async def test_an_unknown_bearer_is_not_admitted() -> None:
    resolver = TokenResolver(MemoryAuthorizationStore("own_x"), lambda: 1, unproven())
    admission = TokenAdmission(resolver, frozenset({"http://127.0.0.1:7662"}))
    with pytest.raises(InvalidToken):
        await admission.judge(bearer("nothing"))
