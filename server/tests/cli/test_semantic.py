"""`pdpp semantic`: a model from a folder, a hub or an endpoint, and none."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pdpp_kernel.vectors import distance
from pdpp_mcp_server.commands.exits import run_app
from personal_server.cli import semantic as command
from personal_server.semantics.chosen import read_choice
from personal_server.semantics.embedder import EmbedderFailed
from personal_server.semantics.endpoint import EndpointEmbedder, is_of_this_machine
from server.tests.semantics.weights import MODEL, needs_weights

Answer = Callable[[str, bytes], tuple[int, bytes]]


@contextmanager
def served(answer: Answer) -> Generator[str]:
    """A server on this machine that answers so."""

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            status, content = answer(self.path, self.rfile.read(size))
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _reply  # noqa: N815 (the library's names)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def run(*arguments: str) -> int:
    return run_app(command.semantic_app(), list(arguments))


def from_folder(path: str, _body: bytes) -> tuple[int, bytes]:
    name = path.split("/resolve/main/")[1].removeprefix("onnx/")
    file = MODEL / name
    return (200, file.read_bytes()) if file.is_file() else (404, b"")


def as_ollama(path: str, body: bytes) -> tuple[int, bytes]:
    assert path == "/v1/embeddings"
    texts = json.loads(body)["input"]
    rows = [{"index": n, "embedding": [len(text), *[1.0] * 7]} for n, text in enumerate(texts)]
    return 200, json.dumps({"data": rows[::-1]}).encode()


@needs_weights
def test_a_folder_is_tried_kept_shown_and_removed(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("install", "--from", str(MODEL)) == 0
    chosen = read_choice(data_dir)
    assert chosen is not None
    assert (data_dir / "semantic" / chosen.place / "tokenizer.json").is_file()
    capsys.readouterr()
    assert run("status", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["identity"], told["streams"]) == (chosen.identity, [])
    assert run("remove") == 0
    assert read_choice(data_dir) is None
    assert not (data_dir / "semantic").exists()


def test_a_folder_that_is_no_model_is_not_chosen(data_dir: Path, tmp_path: Path) -> None:
    assert run("install", "--from", str(tmp_path)) == 64
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    assert run("install", "--from", str(tmp_path)) == 64
    assert read_choice(data_dir) is None


@needs_weights
def test_what_nobody_verified_is_taken_only_when_it_is_said(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(from_folder) as hub:
        assert run("install", "--hub", hub) == 64
        assert read_choice(data_dir) is None
        shown = capsys.readouterr()
        assert "onnx/model.onnx sha256:" in shown.out
        assert run("install", "--hub", hub, "--yes") == 0
    chosen = read_choice(data_dir)
    assert chosen is not None
    assert chosen.kind == "folder"


def test_a_hub_that_has_it_not_says_so(data_dir: Path) -> None:
    with served(lambda _path, _body: (503, b"")) as hub:
        assert run("install", "--hub", hub, "--yes") == 69
    assert run("install", "--hub", hub, "--yes") == 69
    assert read_choice(data_dir) is None


def test_an_endpoint_of_this_machine_is_chosen_and_another_only_by_word(data_dir: Path) -> None:
    assert run("install", "--endpoint", "http://192.0.2.7/v1", "--model", "m") == 64
    with served(as_ollama) as address:
        assert run("install", "--endpoint", f"{address}/v1", "--model", "m") == 0
        chosen = read_choice(data_dir)
        assert chosen is not None
        assert (chosen.kind, chosen.name) == ("endpoint", "m")
        embedder = EndpointEmbedder(chosen.place, "m", chosen.identity, 5.0)
        short, long = embedder.embed(["a", "a" * 900], is_query=False)
        assert distance(short, long) > 0.1
    with pytest.raises(EmbedderFailed):
        embedder.embed(["a"], is_query=True)


@pytest.mark.parametrize(
    "answer", [b"", b"{}", b'{"data": []}', b'{"data": [{"index": 0, "embedding": ["x"]}]}']
)
def test_what_is_no_vector_is_refused(answer: bytes) -> None:
    with served(lambda _path, _body: (200, answer)) as address:
        embedder = EndpointEmbedder(address, "m", "m", 5.0)
        with pytest.raises(EmbedderFailed):
            embedder.embed(["a"], is_query=True)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:8080", True),
        ("http://10.0.0.2/v1", False),
        ("https://models.example/v1", False),
        ("http://localhost.example", False),
    ],
)
def test_where_an_address_leads(url: str, expected: bool) -> None:
    assert is_of_this_machine(url) is expected
