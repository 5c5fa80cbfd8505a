"""A model in a process of its own: what it gives, what it gave up, what happens when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from pdpp_kernel.vectors import distance
from personal_server.semantics.embedder import EmbedderFailed, ModelProcess
from server.tests.semantics.weights import MODEL, needs_weights

OFFLINE = """
import sys
from pathlib import Path
def watch(event, arguments):
    if event.startswith("socket."):
        raise SystemExit("a socket: " + event)
sys.addaudithook(watch)
from personal_server.semantics.model import FolderModel
FolderModel(Path(sys.argv[1])).embed(["offline"], is_query=True)
sys.exit("a hub" if "huggingface_hub" in sys.modules else 0)
"""


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def process(clock: Clock) -> Generator[ModelProcess]:
    made = ModelProcess(MODEL, "minilm", seconds=60, monotonic=clock)
    yield made
    made.close()


def child_of(process: ModelProcess) -> int:
    return process._child._process.pid  # type: ignore[union-attr]


@needs_weights
def test_what_means_the_same_is_near(process: ModelProcess) -> None:
    (query,) = process.embed(["How do I encrypt my mail?"], is_query=True)
    texts = [
        "PGP encryption of messages for beginners",
        "The weather in Rome",
        "Cooking pasta with tomatoes",
    ]
    near, *far = (distance(query, each) for each in process.embed(texts, is_query=False))
    assert near < min(far) - 0.1
    assert len(query) == 384


@needs_weights
def test_a_text_has_the_same_vector_alone_and_among_longer_ones(process: ModelProcess) -> None:
    (alone,) = process.embed(["rain"], is_query=False)
    among = process.embed(["rain", "a much longer text about the garden in May"], is_query=False)
    assert distance(alone, among[0]) < 0.05


@needs_weights
@pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")
def test_it_gave_up_the_network_and_new_processes(process: ModelProcess) -> None:
    process.embed(["ready"], is_query=True)
    assert process.unconfined == []
    status = Path(f"/proc/{child_of(process)}/status").read_text()
    assert "Seccomp:\t2" in status


@needs_weights
def test_it_is_started_again_when_it_was_killed(process: ModelProcess, clock: Clock) -> None:
    process.embed(["rain"], is_query=True)
    os.kill(child_of(process), signal.SIGKILL)
    for _ in range(2):  # not at once
        with pytest.raises(EmbedderFailed):
            process.embed(["rain"], is_query=True)
        clock.now += 20  # and no later for having been asked
    assert process.embed(["rain"], is_query=True)


@needs_weights
def test_an_end_does_not_wait_for_what_is_being_embedded(process: ModelProcess) -> None:
    process.embed(["ready"], is_query=True)
    os.kill(child_of(process), signal.SIGSTOP)  # it would never answer
    failed: list[EmbedderFailed] = []

    def embed() -> None:
        try:
            process.embed(["rain"], is_query=True)
        except EmbedderFailed as error:
            failed.append(error)

    waiting = threading.Thread(target=embed)
    waiting.start()
    while not process._lock.locked():  # type: ignore[reportPrivateUsage]
        pass
    process.close()
    waiting.join(20)
    assert len(failed) == 1


@needs_weights
def test_nothing_opens_a_socket_and_no_hub_is_imported() -> None:
    environment = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(MODEL)],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("broken", ["", "no graph"])
def test_a_folder_that_is_no_model_fails(tmp_path: Path, broken: str) -> None:
    if broken:
        (tmp_path / "model.onnx").write_text(broken)
    process = ModelProcess(tmp_path, "broken")
    with pytest.raises(EmbedderFailed):
        process.embed(["rain"], is_query=True)
    process.close()
