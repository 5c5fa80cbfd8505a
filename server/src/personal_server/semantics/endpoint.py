"""Texts embedded by a server that speaks OpenAI's `POST …/embeddings`: Ollama, llama.cpp, vLLM.

Rule: only the texts go there, to the address that the owner named; an address that is not of this
machine needs the owner's word for it, since every text that is embedded is sent to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2

from pdpp_kernel.vectors import shortened
from personal_server.semantics.embedder import EmbedderFailed

AT_ONCE = 16
MOST_DIMENSIONS = 8_192


def is_of_this_machine(url: str) -> bool:
    """Whether what is sent to an address stays on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class EndpointEmbedder:
    """A model behind an address, such as `http://127.0.0.1:11434/v1`."""

    def __init__(self, url: str, name: str, model: str, seconds: float) -> None:
        self._url = f"{url.rstrip('/')}/embeddings"
        self._name = name
        self._model = model
        # what a proxy of the environment would see is not the endpoint's business
        self._client = httpx2.Client(timeout=seconds, trust_env=False, follow_redirects=False)

    @property
    def model(self) -> str:
        """Address and name: another server's vectors may be others."""
        return self._model

    def embed(self, texts: Sequence[str], *, is_query: bool) -> list[bytes]:
        """Some at a time.  Raises: EmbedderFailed."""
        del is_query  # the endpoint has no word for it
        found: list[bytes] = []
        for begin in range(0, len(texts), AT_ONCE):
            found += self._embed(texts[begin : begin + AT_ONCE])
        return found

    def close(self) -> None:
        """Connections are opened again when they are needed."""

    def _embed(self, texts: Sequence[str]) -> list[bytes]:
        try:
            asked = {"model": self._name, "input": list(texts), "encoding_format": "float"}
            reply = self._client.post(self._url, json=asked)
            if reply.status_code != 200:
                raise ValueError("a refusal")
            return _vectors(reply.json(), len(texts))
        except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            raise EmbedderFailed(
                "The endpoint gave no vectors. Does the endpoint run, and does it know the model?"
            ) from error


def _vectors(body: Any, count: int) -> list[bytes]:
    """The vectors in the order of the texts.  Raises: ValueError, KeyError, TypeError."""
    rows = cast("list[dict[str, Any]]", body["data"])
    found = [row["embedding"] for row in sorted(rows, key=lambda row: row["index"])]
    sizes = {len(numbers) for numbers in found}
    if len(found) != count or len(sizes) != 1 or not 8 <= min(sizes) <= MOST_DIMENSIONS:
        raise ValueError("the endpoint gave other vectors than were asked for")
    if min(sizes) % 8:
        raise ValueError("signs are packed by eight")
    return [shortened([float(number) for number in numbers]) for numbers in found]
