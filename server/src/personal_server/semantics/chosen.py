"""Which model the owner chose: a file beside the database, and the folder of a model.

Rule: it is written whole or not at all, and read anew by a server that runs, so that a choice needs
no restart.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from pdpp_kernel.errors import StorageUnavailable

GET_PACKAGES = "make semantic, or pip install 'pdpp-personal-server[semantic]'"
NEEDED = ("onnxruntime", "tokenizers", "sqlite_vec")
# What a folder of a model may hold that is used; all else stays where it was.
USED_FILES = (
    "model.onnx",
    "model.onnx_data",
    "onnx/model.onnx",
    "onnx/model.onnx_data",
    "onnx/model_quantized.onnx",
    "tokenizer.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    "LICENSE",
    "NOTICE",
)
GRAPHS = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")


class ModelUnusable(Exception):
    """A folder that is no model; `sentence` says why."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class ChosenModel(msgspec.Struct, frozen=True):
    """The owner's choice.

    Shapes: `identity` tells its vectors from those of others; `place` is the name of the folder
        beside this file, or the address of an endpoint, whose model is `name`.
    """

    kind: Literal["folder", "endpoint"]
    identity: str
    name: str
    place: str


def missing_packages() -> list[str]:
    """What the extra `semantic` brings and is not there."""
    return [name for name in NEEDED if find_spec(name) is None]


def needed_by(chosen: ChosenModel) -> tuple[str, ...]:
    """The packages without which a choice cannot be used."""
    return NEEDED if chosen.kind == "folder" else ("sqlite_vec",)


def semantic_folder(data_dir: Path) -> Path:
    """Where the choice and the model lie."""
    return data_dir / "semantic"


def read_choice(data_dir: Path) -> ChosenModel | None:
    """What was chosen, if anything.  Raises: StorageUnavailable."""
    try:
        return msgspec.json.decode(_choice_path(data_dir).read_bytes(), type=ChosenModel)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError):
        raise StorageUnavailable(
            "The chosen model cannot be read. Choose a model again: pdpp semantic install."
        ) from None


def write_choice(data_dir: Path, chosen: ChosenModel) -> None:
    """Choose.  Raises: OSError."""
    folder = semantic_folder(data_dir)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = folder / f".model-{os.getpid()}.json"
    try:
        scratch.write_bytes(msgspec.json.encode(chosen))
        scratch.chmod(0o600)
        scratch.replace(_choice_path(data_dir))
    finally:
        scratch.unlink(missing_ok=True)
    for other in folder.iterdir():
        if other.is_dir() and other.name != chosen.place:
            shutil.rmtree(other, ignore_errors=True)


def forget_choice(data_dir: Path) -> bool:
    """Choose none, and remove the model; whether there was one.  Raises: OSError."""
    folder = semantic_folder(data_dir)
    if not folder.exists():
        return False
    was_chosen = _choice_path(data_dir).exists()
    _choice_path(data_dir).unlink(missing_ok=True)
    shutil.rmtree(folder)
    return was_chosen


def endpoint_choice(url: str, name: str) -> ChosenModel:
    """A model behind an address."""
    return ChosenModel("endpoint", f"endpoint:{url} {name}", name, url)


def keep_folder(data_dir: Path, source: Path, name: str) -> ChosenModel:
    """Copy the files of a model that are used; they are chosen by `write_choice`.

    Raises: ModelUnusable, OSError.
    """
    used = [each for each in USED_FILES if (source / each).is_file()]
    if not set(GRAPHS) & set(used):
        raise ModelUnusable("The folder contains no ONNX graph: model.onnx, or onnx/model.onnx.")
    if "tokenizer.json" not in used:
        raise ModelUnusable("The folder contains no tokenizer.json.")
    identity = digest_of(source, used)
    folder_name = identity[:16]
    target = semantic_folder(data_dir) / folder_name
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = target.with_name(f".{folder_name}-{os.getpid()}")
    try:
        for each in used:
            kept = scratch / each
            kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copyfile(source / each, kept)
        shutil.rmtree(target, ignore_errors=True)
        scratch.replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return ChosenModel("folder", f"sha256:{identity}", name, folder_name)


def digest_of(folder: Path, names: list[str]) -> str:
    """Over the files of a model, by their names."""
    whole = hashlib.sha256()
    for name in sorted(names):
        with (folder / name).open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        whole.update(f"{name} {digest}\n".encode())
    return whole.hexdigest()


def _choice_path(data_dir: Path) -> Path:
    return semantic_folder(data_dir) / "model.json"
