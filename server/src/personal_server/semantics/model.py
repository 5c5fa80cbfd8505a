"""A model in a folder, as sentence-transformers lays it out: ONNX graph, tokenizer, what follows.

Only the process of `semantics/embedding_process.py` imports this: the libraries are large, and what
they read was made by others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from pdpp_kernel.vectors import GREATEST

GRAPHS = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
DEFAULT_TOKENS = 256
_CLS, _MEAN = "pooling_mode_cls_token", "pooling_mode_mean_tokens"


class FolderModel:
    """Embeds texts.  Raises: OSError, ValueError, and what the libraries raise for bad files."""

    def __init__(self, folder: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        graph = next((folder / name for name in GRAPHS if (folder / name).is_file()), None)
        if graph is None:
            raise ValueError("the model contains no graph")
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=providers)
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._tokenizer: Any = cast("Any", Tokenizer).from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_most_tokens(folder))
        self._is_first_token = _pooling(folder)
        self._prompts = _prompts(folder)

    def embed(self, texts: Sequence[str], *, is_query: bool) -> list[bytes]:
        """A vector for each text (`pdpp_kernel.vectors`)."""
        prompt = self._prompts[is_query]
        found = [self._tokenizer.encode(prompt + text) for text in texts]
        longest = max(len(each.ids) for each in found)
        ids = np.zeros((len(found), longest), np.int64)
        mask = np.zeros((len(found), longest), np.int64)
        for row, each in enumerate(found):
            ids[row, : len(each.ids)] = each.ids
            mask[row, : len(each.ids)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        fed = {name: value for name, value in given.items() if name in self._inputs}
        tokens: NDArray[np.float32] = self._session.run(None, fed)[0]
        return [row.tobytes() for row in _shortened(self._pooled(tokens, mask))]

    def _pooled(self, tokens: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        if tokens.ndim == 2:  # the graph pools itself
            return tokens
        if self._is_first_token:
            return tokens[:, 0]
        weights = mask[:, :, None].astype(np.float32)
        return (tokens * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)


def _shortened(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    usable = np.isfinite(largest) & (largest > 0)
    scaled = np.where(usable, vectors * (GREATEST / np.where(usable, largest, 1.0)), 0.0)
    return np.rint(scaled).astype(np.int8)


def _most_tokens(folder: Path) -> int:
    found = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    return found if isinstance(found, int) and 0 < found <= 8_192 else DEFAULT_TOKENS


def _pooling(folder: Path) -> bool:
    """Whether the first token stands for all; else their mean.  Raises: ValueError for others."""
    settings = _json(folder / "1_Pooling" / "config.json")
    wanted = {name for name, value in settings.items() if name.startswith("pooling_mode") and value}
    if not wanted <= {_CLS, _MEAN} or len(wanted) > 1:
        raise ValueError("pooling")
    return wanted == {_CLS}


def _prompts(folder: Path) -> tuple[str, str]:
    """What stands before a text, and before a query."""
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    named: dict[str, Any] = cast("dict[str, Any]", prompts) if isinstance(prompts, dict) else {}
    passage = named.get("document", named.get("passage", ""))
    return (str(passage or ""), str(named.get("query") or ""))


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found: Any = json.loads(path.read_text())
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
