import re

import pytest

from personal_server.web.accept_headers import prefers_html, prefers_json
from personal_server.web.requests import request_id_of
from personal_server.web.responses import accepts_gzip

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "html", "json"),
    [
        ("", False, False),
        ("*/*", False, False),
        ("text/html, application/json", False, False),
        (BROWSER, True, False),
        ("text/html", True, False),
        ("TEXT/HTML;level=1 ; Q=0.5", True, False),
        ("text/html, application/json;q=0.9", True, False),
        ("text/html;q=0.5, application/json", False, True),
        ("application/json", False, True),
        ("application/json, text/plain, */*", False, True),
        ("application/json;q=0.2, */*;q=0.1", False, True),
        ("application/*", False, True),
        ("text/html;q=0", False, False),
        ("text/html;q=0, */*", False, True),
        ("application/json;q=0, */*", True, False),
        ("application/json;q=0, text/html;q=0", False, False),
        ("text/html;q=x, application/json;q=y", False, False),
        ("text/html;q=x, application/json", False, True),
        ("text/html;q=2, application/json;q=0.1", False, True),
        (", ;q=1,,", False, False),
    ],
)
def test_the_weights_of_accept_tell_a_page_from_json(accept: str, html: bool, json: bool) -> None:
    assert (prefers_html(accept), prefers_json(accept)) == (html, json)


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [
        ("", False),
        ("gzip", True),
        ("br, GZip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip ; q=0.000, *", False),
        ("*;q=0, gzip", True),
        ("*", True),
        ("x-gzip", False),
    ],
)
def test_gzip_is_used_where_it_is_wanted(accepted: str, zipped: bool) -> None:
    assert accepts_gzip(accepted) is zipped


@pytest.mark.parametrize("sent", ["a", "Req_1.2:3-4", "x" * 128])
def test_a_plain_request_id_is_echoed_from_either_header(sent: str) -> None:
    assert request_id_of({"request-id": sent, "x-request-id": "other"}) == sent
    assert request_id_of({"x-request-id": sent}) == sent


@pytest.mark.parametrize("sent", ["", "x" * 129, "a b", "a\n", "ä", "<b>"])
def test_instead_of_any_other_one_is_minted(sent: str) -> None:
    made = [request_id_of(headers) for headers in ({"request-id": sent}, {})]
    assert all(re.fullmatch("req_[0-9a-f]{24}", each) for each in made)
    assert made[0] != made[1]
