import base64

import pytest

from pdpp_kernel.errors import MethodNotAllowed, PersonalServerError
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import Route
from personal_server.web.routing import RouteTable


def nothing(request: Request) -> Reply:
    return Reply(status=204)


def route(method: str, pattern: str) -> Route:
    return Route(method, pattern, nothing, "", "0")


TABLE = RouteTable(
    [
        route("GET", "/v1/streams"),
        route("GET", "/v1/streams/{stream}/records/{record_key}"),
        route("DELETE", "/v1/streams/{stream}/records/{record_key}"),
    ]
)


@pytest.mark.parametrize(
    ("segment", "key"),
    [
        ("ent_41", "ent_41"),
        ("a%2Fb", "a/b"),
        ("%5B%22u1%22%2C%22x%22%5D", '["u1","x"]'),
        ("~b64." + base64.urlsafe_b64encode(b"..").decode().rstrip("="), ".."),
        ("%2E%2E", ".."),
    ],
)
def test_a_record_key_survives_as_one_segment(segment: str, key: str) -> None:
    path = f"/v1/streams/entries/records/{segment}".encode()
    assert TABLE.match(path).path == {"stream": "entries", "record_key": key}


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/streams/", "/v1//streams", "/v1/streams/a/b"])
def test_an_unknown_path_is_not_found(path: str) -> None:
    with pytest.raises(PersonalServerError) as caught:
        TABLE.match(path.encode())
    assert caught.value.code == "not_found"


@pytest.mark.parametrize("segment", ["%FF", "~b64.%21", "~b64.__8"])
def test_a_segment_that_is_not_text_is_refused(segment: str) -> None:
    with pytest.raises(PersonalServerError) as caught:
        TABLE.match(f"/v1/streams/entries/records/{segment}".encode())
    assert caught.value.code == "invalid_request"


def test_head_works_where_get_does_and_others_are_named() -> None:
    match = TABLE.match(b"/v1/streams/e/records/k")
    assert match.route("HEAD").method == "GET"
    assert match.methods == ("DELETE", "GET", "HEAD")
    with pytest.raises(MethodNotAllowed):
        match.route("POST")
