"""Redirect URIs: usable, matching, and with parameters added."""

from __future__ import annotations

import pytest

from personal_server.consent.redirects import is_usable, matches, with_parameters


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.example/cb",
        "https://app.example/cb?x=1",
        "http://127.0.0.1/cb",
        "http://127.0.0.1:5555/cb",
        "http://[::1]:5555/cb",
        "http://localhost:5555/cb",
        "com.example.app:/cb",
        "com.example.app://cb",
        "com.example.my-app:/cb",
        "io.k8s:/cb",
        "cursor://anysphere.cursor-retrieval/oauth/callback",
        "vscode://vscode.github-authentication/did-authenticate",
    ],
)
def test_usable(uri: str) -> None:
    assert is_usable(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/cb",
        "javascript:alert(1)",
        "java.script:alert(1)",
        "java+script:alert(1)",
        "j.a.v.a.script:alert(1)",
        "da.ta:text/html,x",
        "view-source:x.y",
        "data:text/html,x",
        "file:///etc/passwd",
        "http://app.example/cb",
        "http://127.0.0.1.evil.example/cb",
        "http://127.0.0.2/cb",
        "http://0.0.0.0/cb",
        "https://user@app.example/cb",
        "https://user:pw@app.example/cb",
        "http://127.0.0.1@evil.example/cb",
        "https://app.example/cb#x",
        "https://*.example/cb",
        "https://app.example:0/cb",
        "https://app.example:99999/cb",
        "https:///cb",
        "https://app.example/\u202e",
        "https://app.example/ x",
        "https://app.example/%zz",
        "https://app.example\\@evil.example",
        "HTTPS://app.example/cb",
        "myapp://cb",
        "a.b:/cb",
        "1.0:/cb",
        "x.y+z:/cb",
        "my-app.x:/cb",
        "com..app:/cb",
        "com.app.:/cb",
        "com.-app:/cb",
        "com.javascript.app:alert(1)",
        "com." + "x" * 64 + ":/cb",
        "https://app.example/" + "x" * 2_048,
    ],
)
def test_unusable(uri: str) -> None:
    assert not is_usable(uri)


@pytest.mark.parametrize(
    ("registered", "uri", "fits"),
    [
        ("https://app.example/cb", "https://app.example/cb", True),
        ("https://app.example/cb", "https://app.example/cb/", False),
        ("https://app.example/cb", "https://app.example/cb?x=1", False),
        ("https://app.example/cb", "https://APP.example/cb", False),
        ("https://app.example/cb", "https://app.example:443/cb", False),
        ("https://app.example/cb", "https://app.example/%63b", False),
        ("https://app.example/cb", "https://app.example/cb/../cb", False),
        ("https://app.example/cb", "https://app.example.evil.example/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:5555/cb", True),
        ("http://127.0.0.1:1234/cb", "http://127.0.0.1:5555/cb", True),
        ("http://127.0.0.1:1234/cb", "http://127.0.0.1/cb", True),
        ("http://[::1]/cb", "http://[::1]:5555/cb", True),
        ("http://localhost/cb", "http://localhost:5555/cb", True),
        ("http://localhost/cb", "http://127.0.0.1:5555/cb", False),
        ("http://127.0.0.1/cb", "http://localhost:5555/cb", False),
        ("http://127.0.0.1/cb", "http://[::1]:5555/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:5555/other", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:5555/cb?x=1", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:5555/cb?", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:5555/cb#x", False),
        ("http://127.0.0.1/cb", "https://127.0.0.1:5555/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:5555@evil.example/cb", False),
        ("http://127.0.0.1/cb", "http://user@127.0.0.1:5555/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:x/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1.evil.example:5555/cb", False),
    ],
)
def test_only_the_port_of_a_loopback_redirect_is_free(
    registered: str, uri: str, fits: bool
) -> None:
    assert matches([registered], uri) is fits


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("https://a.example/cb", "https://a.example/cb?code=c+d&iss=i"),
        ("https://a.example/cb?x=1", "https://a.example/cb?x=1&code=c+d&iss=i"),
        ("https://a.example/cb?", "https://a.example/cb?code=c+d&iss=i"),
        ("cursor://x/cb", "cursor://x/cb?code=c+d&iss=i"),
    ],
)
def test_parameters_are_added_beside_the_own_query(uri: str, found: str) -> None:
    assert with_parameters(uri, {"code": "c d", "state": None, "iss": "i"}) == found
