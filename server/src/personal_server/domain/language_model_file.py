"""The arrays of the language model: unpacked once, then mapped from a file beside the program.

Unpacking takes half a second of a processor and 200 MB for that moment.  What comes of it is kept
in the folder of compiled modules, for this version of the package and of this module, and all
processes share its pages.  Where that folder cannot be written to, each process unpacks the model
into 81 MB of its own.
"""

from __future__ import annotations

import io
import lzma
import mmap
import struct
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from py3langid.langid import MODEL_DIR, MODEL_FILE

from personal_server.domain.language_names import STEMLESS, STEMMERS

_FORM = 2  # raised where what is kept has to be made anew
_NAME = "language_model"
_NEW = f"{_NAME}.new-"
_FOLDER = Path(cache_from_source(__file__)).parent
_ROW_BITS = 8  # a row of the automaton has a place for each byte
_ALIGNED, _PIECE_BYTES = 64, 1 << 20
_SUM, _LENGTHS = struct.Struct(">I"), struct.Struct(">6Q12x")


class ModelArrays(NamedTuple):
    """What the model consists of.

    Shapes: `codes` is the language of each column; `weights` are features by columns; `rows` says
        of each state of the automaton where its row begins in `following`, and `features` which
        feature ends in it, or -1.
    """

    codes: NDArray[np.bytes_]
    begins: NDArray[np.float32]
    weights: NDArray[np.float32]
    rows: NDArray[np.uint32]
    features: NDArray[np.int32]
    following: NDArray[np.uint32]


_TYPES = ("S2", np.float32, np.float32, np.uint32, np.int32, np.uint32)


def read_model(folder: Path = _FOLDER) -> ModelArrays:
    """From the file in a folder, which is made where it is missing, or else from the package."""
    packed = MODEL_DIR / MODEL_FILE
    kept = folder / _name_for(packed)
    if (arrays := mapped(kept)) is not None:
        return arrays
    arrays = unpacked(packed.read_bytes())
    with suppress(OSError):
        keep(arrays, kept)
    return mapped(kept) or arrays


def unpacked(packed: bytes) -> ModelArrays:
    """The model as the package keeps it, of the languages that are told apart."""
    with np.load(io.BytesIO(lzma.decompress(packed))) as model:
        codes: list[str] = model["classes"].tolist()
        columns = _columns_of(codes)
        return ModelArrays(
            np.array([codes[at] for at in columns], dtype=_TYPES[0]),
            model["pc"].take(columns),
            model["ptc"].take(columns, axis=1).astype(np.float32),
            model["nextmove_row"].astype(np.uint32) << _ROW_BITS,
            model["out_feat"],
            model["nextmove"],
        )


def _columns_of(codes: Sequence[str]) -> list[int]:
    """Those of the languages that are told apart; of some there are two.

    These come first, in the same order as their second columns, which come last.
    """
    first: dict[str, int] = {}
    second: dict[str, int] = {}
    for at, code in enumerate(codes):
        if code in first:
            second[code] = at
        elif code in {*STEMMERS, *STEMLESS.split()}:
            first[code] = at
    doubled = [first.pop(code) for code in second]
    return [*doubled, *first.values(), *second.values()]


def _name_for(packed: Path) -> str:
    """What the arrays follow from is in the name of their file."""
    state = packed.stat()
    source = (_FORM, state.st_size, state.st_mtime_ns, sorted(STEMMERS), STEMLESS)
    return f"{_NAME}.{zlib.crc32(repr(source).encode()):08x}"


def keep(arrays: ModelArrays, path: Path) -> None:
    """Write a file whole, in the place of those of other versions.

    It begins with a sum of all that follows and the lengths of the arrays, which stand in the order
    of their fields, each at a multiple of so many bytes.  What a process left that was killed here
    goes, too; one that still writes finds this file instead.  Raises: OSError.
    """
    contents = [array.tobytes() for array in arrays]
    lengths = _LENGTHS.pack(*map(len, contents))
    summed = [lengths, *(content + bytes(-len(content) % _ALIGNED) for content in contents)]
    total = 0
    for content in summed:
        total = zlib.crc32(content, total)
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_NEW, delete=False) as new:
        written = Path(new.name)
        try:
            new.write(_SUM.pack(total))
            new.writelines(summed)
            new.flush()
            written.chmod(0o644)
            written.replace(path)
        except BaseException:
            written.unlink(missing_ok=True)
            raise
    for names in (f"{_NAME}.????????", f"{_NEW}*"):
        for other in path.parent.glob(names):
            if other != path:
                other.unlink(missing_ok=True)


def mapped(path: Path) -> ModelArrays | None:
    """What was kept, unless it is missing or damaged."""
    try:
        with path.open("rb") as file:
            (total,) = _SUM.unpack(file.read(_SUM.size))
            packed = file.read(_LENGTHS.size)
            lengths = _LENGTHS.unpack(packed)
            summed = zlib.crc32(packed)
            # of what is read: a page that was looked at through the map stays in it
            while piece := file.read(_PIECE_BYTES):
                summed = zlib.crc32(piece, summed)
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError, struct.error):
        return None
    if summed != total:
        return None
    at, found = _SUM.size + _LENGTHS.size, list[NDArray[Any]]()
    for length, kind in zip(lengths, _TYPES, strict=True):
        found.append(np.frombuffer(content[at : at + length], kind))
        at += length + -length % _ALIGNED
    arrays = ModelArrays(*found)
    return arrays._replace(weights=arrays.weights.reshape(-1, len(arrays.codes)))
