from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import anyio
import pytest

from pdpp_kernel.values import render_instant
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from pdpp_mcp_server.rs_client.credentials import (
    Credential,
    CredentialExpired,
    Document,
    MetadataFailure,
    OwnerTokenRefused,
    ProviderUnavailable,
)
from pdpp_mcp_server.rs_client.port import HeldToken
from pdpp_mcp_server.rs_client.refresh import CachedBearer, CachedCredential, NetworkTokenEndpoint

NOW_NS = 1_795_000_000_000_000_000
PROVIDER = "http://127.0.0.1:7662"


def stored(provider: str, seconds_left: int, **credential: object) -> Document:
    return {
        "provider_url": provider,
        "client": {"client_id": "cli_1"},
        "credential": {
            "access_token": "pdpp_at_old",
            "refresh_token": "pdpp_rt_old",
            "token_type": "Bearer",
            "token_kind": "client",
            "expires_at": render_instant(NOW_NS + seconds_left * 1_000_000_000),
            **credential,
        },
    }


@dataclass
class FakeEndpoint:
    """Answers each refresh with the next pair, or raises."""

    error: Exception | None = None
    refreshed: list[str | None] = field(default_factory=list[str | None])

    def refresh(self, credential: Credential) -> Document:
        self.refreshed.append(credential.refresh_token)
        if self.error is not None:
            raise self.error
        number = len(self.refreshed)
        return {
            "access_token": f"pdpp_at_{number}",
            "refresh_token": f"pdpp_rt_{number}",
            "expires_in": 3600,
        }


def cached(tmp_path: Path, endpoint: FakeEndpoint, document: Document) -> CachedCredential:
    cache = CredentialCache(tmp_path)
    cache.save(document)
    return CachedCredential(cache, PROVIDER, endpoint, lambda: NOW_NS)


def test_a_token_with_time_left_is_used_as_it_is(tmp_path: Path) -> None:
    endpoint = FakeEndpoint()
    credential = cached(tmp_path, endpoint, stored(PROVIDER, 60))
    assert credential.current().access_token == "pdpp_at_old"
    assert endpoint.refreshed == []


def test_a_token_near_its_end_is_refreshed_and_written(tmp_path: Path) -> None:
    endpoint = FakeEndpoint()
    credential = cached(tmp_path, endpoint, stored(PROVIDER, 59))
    assert credential.current().access_token == "pdpp_at_1"
    assert credential.cache.load(PROVIDER).refresh_token == "pdpp_rt_1"
    assert credential.current().access_token == "pdpp_at_1"
    assert endpoint.refreshed == ["pdpp_rt_old"]


def test_a_rejected_token_is_refreshed_once_and_the_newer_one_found(tmp_path: Path) -> None:
    endpoint = FakeEndpoint()
    credential = cached(tmp_path, endpoint, stored(PROVIDER, 3000))
    first = credential.renewed_after("pdpp_at_old")
    again = credential.renewed_after("pdpp_at_old")
    assert first is not None
    assert again is not None
    assert first.access_token == again.access_token == "pdpp_at_1"
    assert endpoint.refreshed == ["pdpp_rt_old"]


def test_without_a_refresh_token_a_rejection_stands(tmp_path: Path) -> None:
    endpoint = FakeEndpoint()
    credential = cached(tmp_path, endpoint, stored(PROVIDER, 30, refresh_token=None))
    assert credential.current().access_token == "pdpp_at_old"
    assert credential.renewed_after("pdpp_at_old") is None
    assert endpoint.refreshed == []


def test_an_expired_token_without_refresh_token_is_expired(tmp_path: Path) -> None:
    credential = cached(tmp_path, FakeEndpoint(), stored(PROVIDER, -1, refresh_token=None))
    with pytest.raises(CredentialExpired):
        credential.load_usable()


def test_a_refused_refresh_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    endpoint = FakeEndpoint(CredentialExpired("no", "connect"))
    credential = cached(tmp_path, endpoint, stored(PROVIDER, 0))
    before = credential.cache.path(PROVIDER).read_bytes()
    with pytest.raises(CredentialExpired):
        credential.current()
    assert credential.cache.path(PROVIDER).read_bytes() == before


def test_an_owner_credential_is_never_loaded(tmp_path: Path) -> None:
    credential = cached(tmp_path, FakeEndpoint(), stored(PROVIDER, 3000, token_kind="owner"))
    with pytest.raises(OwnerTokenRefused):
        credential.current()
    with pytest.raises(OwnerTokenRefused):
        credential.renewed_after("x")


def test_the_bearer_of_the_adapter_sends_the_old_token_where_refresh_fails(
    tmp_path: Path,
) -> None:
    endpoint = FakeEndpoint(ProviderUnavailable("down", "wait"))
    bearer = CachedBearer(cached(tmp_path, endpoint, stored(PROVIDER, 0)))
    assert anyio.run(bearer.bearer) == HeldToken("pdpp_at_old")
    assert anyio.run(bearer.renew, "pdpp_at_old") is None


def test_the_bearer_of_the_adapter_renews_after_a_rejection(tmp_path: Path) -> None:
    bearer = CachedBearer(cached(tmp_path, FakeEndpoint(), stored(PROVIDER, 3000)))
    assert anyio.run(bearer.renew, "pdpp_at_old") == HeldToken("pdpp_at_1")


class FakeServer(ThreadingHTTPServer):
    """A loopback authorization server that rotates refresh tokens and counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), FakeHandler)
        self.origin = f"http://127.0.0.1:{self.server_port}"
        self.token_endpoint = f"{self.origin}/oauth/token"
        self.current_refresh = "pdpp_rt_old"
        self.answers: list[int] = []
        self.guard = threading.Lock()

    def rotate(self, presented: str) -> tuple[int, dict[str, object]]:
        with self.guard:
            accepted = presented == self.current_refresh
            self.answers.append(200 if accepted else 400)
            if not accepted:
                return 400, {"error": "invalid_grant"}
            self.current_refresh = f"pdpp_rt_{len(self.answers)}"
            return 200, {
                "access_token": f"pdpp_at_{len(self.answers)}",
                "refresh_token": self.current_refresh,
                "expires_in": 3600,
            }


class FakeHandler(BaseHTTPRequestHandler):
    @property
    def fake(self) -> FakeServer:
        assert isinstance(self.server, FakeServer)
        return self.server

    def do_GET(self) -> None:
        self.answer(200, {"issuer": self.fake.origin, "token_endpoint": self.fake.token_endpoint})

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        self.answer(*self.fake.rotate(form["refresh_token"][0]))

    def answer(self, status: int, body: dict[str, object]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def over_network(tmp_path: Path, server: FakeServer) -> CachedCredential:
    cache = CredentialCache(tmp_path)
    cache.save(stored(server.origin, 0))
    return CachedCredential(cache, server.origin, NetworkTokenEndpoint(), lambda: NOW_NS)


def test_the_token_endpoint_of_the_metadata_is_asked(tmp_path: Path, server: FakeServer) -> None:
    assert over_network(tmp_path, server).current().access_token == "pdpp_at_1"


def test_invalid_grant_means_expired(tmp_path: Path, server: FakeServer) -> None:
    server.current_refresh = "pdpp_rt_other"
    with pytest.raises(CredentialExpired):
        over_network(tmp_path, server).current()


def test_a_token_endpoint_elsewhere_gets_no_refresh_token(
    tmp_path: Path, server: FakeServer
) -> None:
    server.token_endpoint = "https://elsewhere.example/token"
    with pytest.raises(MetadataFailure):
        over_network(tmp_path, server).current()
    assert server.answers == []


def test_a_server_that_is_down_is_unavailable(tmp_path: Path) -> None:
    cache = CredentialCache(tmp_path)
    cache.save(stored("http://127.0.0.1:9", 0))
    credential = CachedCredential(
        cache, "http://127.0.0.1:9", NetworkTokenEndpoint(), lambda: NOW_NS
    )
    with pytest.raises(ProviderUnavailable):
        credential.current()


PROCESS = """
import sys
from pathlib import Path
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from pdpp_mcp_server.rs_client.refresh import CachedCredential, NetworkTokenEndpoint
cache, endpoint = CredentialCache(Path(sys.argv[1])), NetworkTokenEndpoint()
credential = CachedCredential(cache, sys.argv[2], endpoint, lambda: int(sys.argv[3]))
print("ready", flush=True)
sys.stdin.readline()
print(credential.current().access_token, flush=True)
"""


def test_eight_processes_with_one_expired_credential_make_one_refresh(
    tmp_path: Path, server: FakeServer
) -> None:
    over_network(tmp_path, server)
    arguments = [sys.executable, "-c", PROCESS, str(tmp_path), server.origin, str(NOW_NS)]
    processes = [
        subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate()[0].strip() for process in processes]
    assert answers == ["pdpp_at_1"] * 8
    assert server.answers == [200]
