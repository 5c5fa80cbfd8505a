"""A model fetched from a hub: named files over HTTPS, and nothing that runs.

Rule: a digest stands here only where it was verified; without one the owner is shown what came and
asked.  Nothing of the owner is sent but the names of files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx2
import msgspec

HUB = "https://huggingface.co"
MOST_BYTES = 2 * 1024**3
CHUNK_BYTES = 1 << 20
GRAPH, TOKENIZER = "onnx/model.onnx", "tokenizer.json"


class HubModel(msgspec.Struct, frozen=True):
    """A model of a hub.

    Shapes: `files` are fetched, `optional` ones where the hub has them; `digests` are SHA-256 of
        files, as far as they were verified.
    """

    name: str
    files: tuple[str, ...] = (GRAPH, TOKENIZER, "1_Pooling/config.json")
    optional: tuple[str, ...] = ("sentence_bert_config.json", "config_sentence_transformers.json")
    revision: str = "main"
    digests: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


# Fifty languages, 384 dimensions, Apache-2.0; some 470 MB.  Nobody verified its digests yet.
MULTILINGUAL = HubModel("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2")


class DownloadFailed(Exception):
    """Nothing usable came; `sentence` says why."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def fetch_model(
    model: HubModel,
    folder: Path,
    client: httpx2.Client,
    tell: Callable[[str, int], None],
    hub: str = HUB,
) -> dict[str, str]:
    """Fetch the files of a model into a folder; the SHA-256 of each.

    Raises: DownloadFailed, OSError.
    """
    digests: dict[str, str] = {}
    for name in (*model.files, *model.optional):
        address = f"{hub}/{model.name}/resolve/{model.revision}/{name}"
        digest = _fetch(client, address, folder / name, is_needed=name in model.files, tell=tell)
        if digest is None:
            continue
        if model.digests.get(name, digest) != digest:
            raise DownloadFailed(f"{name} differs from the file that was verified.")
        digests[name] = digest
    return digests


def _fetch(
    client: httpx2.Client,
    address: str,
    target: Path,
    *,
    is_needed: bool,
    tell: Callable[[str, int], None],
) -> str | None:
    whole, size = hashlib.sha256(), 0
    try:
        with client.stream("GET", address) as reply:
            if reply.status_code == 404 and not is_needed:
                return None
            if reply.status_code != 200:
                raise DownloadFailed(
                    f"The download server answered {reply.status_code} for {target.name}."
                )
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with target.open("wb") as file:
                for chunk in reply.iter_bytes(CHUNK_BYTES):
                    size += len(chunk)
                    if size > MOST_BYTES:
                        raise DownloadFailed(f"{target.name} is larger than any model should be.")
                    whole.update(chunk)
                    file.write(chunk)
    except httpx2.HTTPError:
        raise DownloadFailed(
            "The download server cannot be reached. To use a model on this "
            "machine: pdpp semantic install --from FOLDER."
        ) from None
    tell(target.name, size)
    return whole.hexdigest()
