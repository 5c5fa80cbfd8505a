"""The index in the background: resumed where it stopped, resting, and following what is written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from personal_server.semantics.embedder import EmbedderFailed
from personal_server.semantics.index import (
    MOST_PASSAGES,
    PASSAGE_CHARS,
    PassageIndex,
    passages_of,
)
from personal_server.storage.known_declarations import KnownDeclarations
from server.tests.semantics.tiny import TinyEmbedder
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.ports.test_passages import nearest
from server.tests.storage.worlds import furnish, note, write
from tests.oracle.memory import MemoryStore

RECORDS = 100
KILLED = """
import sys
from pathlib import Path
from server.tests.semantics.test_index import embed_until_killed
embed_until_killed(Path(sys.argv[1]))
"""


class Failing(TinyEmbedder):
    """Fails at the third batch."""

    def embed(self, texts: object, *, is_query: bool) -> list[bytes]:
        if len(self.calls) == 2:
            raise EmbedderFailed("it ended")
        return super().embed(texts, is_query=is_query)  # type: ignore[arg-type]


class Slow(TinyEmbedder):
    """Waits at the third batch until it is closed, and fails then, as a process does."""

    def __init__(self) -> None:
        super().__init__()
        self.waits, self.over = threading.Event(), threading.Event()

    def embed(self, texts: object, *, is_query: bool) -> list[bytes]:
        if len(self.calls) == 2:
            self.waits.set()
            assert self.over.wait(60)
            raise EmbedderFailed("it ended")
        return super().embed(texts, is_query=is_query)  # type: ignore[arg-type]

    def close(self) -> None:
        self.over.set()


class Deadly(TinyEmbedder):
    """Ends the whole process at the third batch, as kill -9 does."""

    def embed(self, texts: object, *, is_query: bool) -> list[bytes]:
        if len(self.calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().embed(texts, is_query=is_query)  # type: ignore[arg-type]


def index_over(store: object, embedder: TinyEmbedder | None) -> PassageIndex:
    return PassageIndex(store, KnownDeclarations(), lambda: embedder, sleep=lambda _: None)  # type: ignore[arg-type]


def embed_until_killed(folder: Path) -> None:
    with sqlite_store(folder) as store:
        index_over(store, Deadly())()


def texts_of(*embedders: TinyEmbedder) -> list[str]:
    return [text for each in embedders for call in each.calls for text in call]


def test_what_failed_goes_on_where_it_stopped() -> None:
    store = MemoryStore()
    furnish(store, "cin_a", "cin_b")
    write(store, "cin_a", [note(f"n{n}", body=f"text {n}") for n in range(RECORDS)])
    failing, well = Failing(), TinyEmbedder()
    with pytest.raises(EmbedderFailed):
        index_over(store, failing)()
    index_over(store, well)()
    assert sorted(texts_of(failing, well)) == sorted(f"text {n}" for n in range(RECORDS))
    assert well.is_closed


def test_a_stop_ends_the_batch_that_is_made_and_loses_nothing() -> None:
    store = MemoryStore()
    furnish(store, "cin_a", "cin_b")
    write(store, "cin_a", [note(f"n{n}", body=f"text {n}") for n in range(RECORDS)])
    slow, well = Slow(), TinyEmbedder()
    index = index_over(store, slow)
    working = threading.Thread(target=index)
    working.start()
    assert slow.waits.wait(60)
    index.stop()
    slow.close()
    working.join(60)
    assert not working.is_alive()
    index()
    assert len(slow.calls) == 2
    index_over(store, well)()
    assert sorted(texts_of(slow, well)) == sorted(f"text {n}" for n in range(RECORDS))


def test_what_was_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a", "cin_b")
        write(store, "cin_a", [note(f"n{n}", body=f"text {n}") for n in range(RECORDS)])
    environment = {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *filter(None, sys.path)])}
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], env=environment, check=False
    )
    assert run.returncode == -signal.SIGKILL
    with sqlite_store(tmp_path) as store:
        (before,) = store.embedding_progress()
        assert 0 < before.waiting < RECORDS
        well = TinyEmbedder()
        index_over(store, well)()
        assert len(texts_of(well)) == before.waiting
        assert nearest(store, "text 7").pending == 0


def test_progress_is_told_until_it_is_done(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a", "cin_b")
        write(store, "cin_a", [note(f"n{n}", body=f"text {n}") for n in range(700)])
        index = index_over(store, TinyEmbedder())
        index()
        assert 0 < index.progress()["embedding"] < 100
        for _ in range(3):
            index()
        assert index.progress() == {}


def test_without_a_model_what_another_made_is_forgotten() -> None:
    store = MemoryStore()
    furnish(store, "cin_a", "cin_b")
    write(store, "cin_a", [note("n1", body="puppy")])
    index_over(store, TinyEmbedder())()
    assert len(nearest(store, "dog").records) == 1
    index_over(store, None)()
    assert store.embedding_model() is None
    assert nearest(store, "dog").records == ()


def test_a_short_text_is_one_passage() -> None:
    assert passages_of("  Heavy rain.\n") == [(2, 13)]
    assert passages_of(" -- ") == []


def test_a_long_one_is_cut_at_paragraphs_and_sentences() -> None:
    text = "A sentence of some length follows. " * 100
    parts = [text[start:end] for start, end in passages_of(text)]
    assert all(part.startswith("A sentence") and part.endswith("follows.") for part in parts)
    assert len(passages_of("word " * 100_000)) == MOST_PASSAGES


@given(st.text(alphabet="ab. \n。", max_size=3_000))
def test_passages_follow_each_other_and_lose_nothing_but_blanks(text: str) -> None:
    at = 0
    for start, end in passages_of(text):
        assert at <= start < end <= start + PASSAGE_CHARS
        assert sum(sign in "ab" for sign in text[at:start]) < 3 * (1 + (start - at) // 300)
        at = end
