"""Whoever embeds texts: the port, and a model of this machine in a process of its own.

Rule: texts go to the model that the owner chose and nowhere else; a model that fails costs a search
its meaning and an import nothing.
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol, cast

WORKER = "personal_server.semantics.embedding_process"
MEMORY_BYTES = 4 * 1024**3
LOWEST_PRIORITY = 19
START_SECONDS = 60.0
QUERY_SECONDS = 5.0
BATCH_SECONDS = 120.0
# After a failure the process is not started again at once.
PAUSE_SECONDS = 30.0
UNUSABLE = "The model cannot be used. See `pdpp semantic status`."
_log = logging.getLogger(__name__)


class EmbedderFailed(Exception):
    """No vectors; `next_step` says what the owner can do."""

    def __init__(self, next_step: str) -> None:
        super().__init__(next_step)
        self.next_step = next_step


class Embedder(Protocol):
    """Turns texts into vectors (`pdpp_kernel.vectors.shortened`)."""

    @property
    def model(self) -> str:
        """What tells this model from others: other vectors cannot be compared with its own."""
        ...

    def embed(self, texts: Sequence[str], *, is_query: bool) -> list[bytes]:
        """A vector for each.  Raises: EmbedderFailed."""
        ...

    def close(self) -> None:
        """Let go of what it holds, at once where it can: what is being embedded then fails."""
        ...


class ModelProcess:
    """A model folder, embedding in a process that is started when it is first needed."""

    def __init__(
        self,
        folder: Path,
        model: str,
        *,
        niceness: int = 0,
        seconds: float = QUERY_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._model = model
        self._niceness = niceness
        self._seconds = seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._child: _ModelChild | None = None
        self._failed_at: float | None = None

    @property
    def model(self) -> str:
        """As it was named when it was installed."""
        return self._model

    def embed(self, texts: Sequence[str], *, is_query: bool) -> list[bytes]:
        """One request at a time.  Raises: EmbedderFailed."""
        with self._lock:
            # who asks meanwhile does not make it longer
            if self._failed_at is not None and self._monotonic() < self._failed_at + PAUSE_SECONDS:
                raise EmbedderFailed(UNUSABLE)
            try:
                child = self._running()
                return child.embed(texts, is_query=is_query, seconds=self._seconds)
            except (OSError, ValueError, KeyError) as error:
                _log.warning("the model gave no vectors: %s", type(error).__name__)
                self._failed_at = self._monotonic()
                self._end()
                raise EmbedderFailed(UNUSABLE) from error

    def close(self) -> None:
        """End the process; whoever waits for it meets its end."""
        child = self._child
        if child is not None:
            child.kill()
        with self._lock:
            self._end()

    @property
    def unconfined(self) -> Sequence[str]:
        """What the running process could not give up."""
        return () if self._child is None else self._child.unconfined

    def _running(self) -> _ModelChild:
        if self._child is not None:
            return self._child
        # known before it is ready, so that it can be ended meanwhile
        self._child = _ModelChild(self._folder, self._niceness)
        self._child.begin()
        return self._child

    def _end(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


class _ModelChild:
    """One process, until it ends.  Raises: OSError, ValueError, KeyError without an answer."""

    def __init__(self, folder: Path, niceness: int) -> None:
        self._process = subprocess.Popen(  # noqa: S603 (this very program)
            [
                *(sys.executable, "-P", "-s", "-S", "-m", WORKER),
                *(str(folder), str(niceness), str(MEMORY_BYTES)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            # Nothing of ours goes with it; the client of a model hub that a library brings along
            # stays offline, and no library starts threads.
            env={
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "HF_HUB_OFFLINE": "1",
                "TOKENIZERS_PARALLELISM": "false",
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
            },
        )
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._replies = cast("IO[bytes]", self._process.stdout)
        self._read = b""
        self._size = 0
        self.unconfined: list[str] = []

    def begin(self) -> None:
        """Wait until it is ready."""
        ready = self._line(time.monotonic() + START_SECONDS)
        self._size = int(ready["dimensions"])
        self.unconfined = ready["unconfined"]

    def embed(self, texts: Sequence[str], *, is_query: bool, seconds: float) -> list[bytes]:
        end = time.monotonic() + seconds
        asked = json.dumps({"texts": list(texts), "is_query": is_query}).encode() + b"\n"
        self._requests.write(asked)
        count = int(self._line(end)["count"])
        if count != len(texts):
            raise ValueError("the model gave another number of vectors")
        whole = self._bytes(count * self._size, end)
        return [whole[at : at + self._size] for at in range(0, len(whole), self._size)]

    def kill(self) -> None:
        """What waits for its answer gets none."""
        self._process.kill()

    def close(self) -> None:
        self.kill()
        self._process.wait()
        self._replies.close()
        with suppress(BrokenPipeError):
            self._requests.close()

    def _line(self, end: float) -> dict[str, Any]:
        while b"\n" not in self._read:
            self._more(end)
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)

    def _bytes(self, size: int, end: float) -> bytes:
        while len(self._read) < size:
            self._more(end)
        found, self._read = self._read[:size], self._read[size:]
        return found

    def _more(self, end: float) -> None:
        left = end - time.monotonic()
        if left <= 0 or not select.select([self._replies], [], [], left)[0]:
            raise TimeoutError
        content = os.read(self._replies.fileno(), 1 << 16)
        if not content:
            raise ValueError("the process of the model ended")
        self._read += content
