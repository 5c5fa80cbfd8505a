import pytest

from personal_server.web.requests import echoed_request_id


@pytest.mark.parametrize("sent", ["a", "Req_1.2:3-4", "x" * 128])
def test_a_plain_id_is_echoed_from_either_header(sent: str) -> None:
    assert echoed_request_id({"request-id": sent, "x-request-id": "other"}) == sent
    assert echoed_request_id({"x-request-id": sent}) == sent


@pytest.mark.parametrize("sent", ["", "x" * 129, "a b", "a\n", "ä", "<b>"])
def test_any_other_is_ignored(sent: str) -> None:
    assert echoed_request_id({"request-id": sent}) is None
