"""The language model in a file: unpacked once, then read row by row beside the program.

Unpacking takes half a second of a processor and 200 MB for that moment.  What comes of it is kept
in the folder of compiled modules, for this version of the package and of this module.  It is not
mapped: around each page that a text needs the system maps fifteen others, so that some hundred
texts would take most of the file into the memory of a process.  Where that folder cannot be written
to, each process unpacks the model into 64 MB of its own.
"""

from __future__ import annotations

import lzma
import os
import struct
import tempfile
import zlib
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import cache_from_source, find_spec
from pathlib import Path

from personal_server.domain.language_names import STEMLESS, STEMMERS

_FORM = 3  # raised where what is kept has to be made anew
_NAME = "language_model"
_NEW = f"{_NAME}.new-"
_FOLDER = Path(cache_from_source(__file__)).parent
_PACKAGE, _PACKED = "py3langid", Path("data", "model.npz.xz")
_BYTES = 256  # a row of the automaton has a place for each
_NUMBER_BYTES = 4
STEPS = 1 << 9
"""Weights are multiples of a 512th, and few of them apart: 32 bits have room for the sum of all."""
_PIECE_BYTES = 1 << 20
_SUM, _LENGTHS = struct.Struct(">I"), struct.Struct(">6Q12x")

ReadBytes = Callable[[int, int], bytes]
"""So many bytes of what is kept, from a place on."""


@dataclass(frozen=True, slots=True)
class KeptModel:
    """The model, of whose two large tables each row is read when it is asked for.

    Shapes: `codes` is the language of each column; `rows` says of each state of the automaton which
        row of `following` holds the next state by the next byte, and `features` which feature ends
        in it, or -1; `weights` are those of a feature in each column: one number, of which each
        column has 32 bits, so that adding two adds all columns.
    Units: weights are logarithms in `STEPS`, from the smallest on.
    """

    codes: Sequence[str]
    begins: array[float]
    rows: array[int]
    features: array[int]
    _read: ReadBytes
    _weights_at: int
    _following_at: int

    def weights(self, feature: int) -> int:
        """Of a feature."""
        size = len(self.codes) * _NUMBER_BYTES
        return int.from_bytes(self._read(size, self._weights_at + feature * size), "little")

    def columns_of(self, weights: int) -> Sequence[int]:
        """The sum of weights in each column."""
        return memoryview(weights.to_bytes(len(self.codes) * _NUMBER_BYTES, "little")).cast("I")

    def following(self, row: int) -> memoryview:
        """The next states."""
        size = _BYTES * _NUMBER_BYTES
        return memoryview(self._read(size, self._following_at + row * size)).cast("I")


def read_model(folder: Path = _FOLDER) -> KeptModel:
    """From the file in a folder, which is made where it is missing, or else from the package."""
    packed = _packed()
    path = folder / _name_for(packed)
    if (kept := kept_in(path)) is not None:
        return kept
    content = unpacked(packed.read_bytes())
    with suppress(OSError):
        keep(content, path)
    return kept_in(path) or _parsed(_slices_of(content))


def _packed() -> Path:
    """Found without its package, which would load what computes with arrays."""
    spec = find_spec(_PACKAGE)
    [folder, *_] = (spec and spec.submodule_search_locations) or [""]
    return Path(folder) / _PACKED


def unpacked(packed: bytes) -> bytes:
    """The model as the package keeps it, of the languages that are told apart, as it is kept here.

    It begins with a sum of all that follows and the lengths of the six arrays, which stand in the
    order of `KeptModel`, the weights before the rows and the following states last.
    """
    # only what unpacks computes with arrays
    import io  # noqa: PLC0415

    import numpy as np  # noqa: PLC0415

    with np.load(io.BytesIO(lzma.decompress(packed))) as model:
        codes: list[str] = model["classes"].tolist()
        columns = _columns_of(codes)
        weights = model["ptc"].take(columns, axis=1).astype(np.float32)
        arrays = (
            np.array([codes[at] for at in columns], dtype="S2"),
            model["pc"].take(columns).astype(np.float32),
            ((weights - weights.min()) * STEPS).round().astype("<u4"),
            model["nextmove_row"].astype(np.uint32),
            model["out_feat"].astype(np.int32),
            model["nextmove"].astype(np.uint32),
        )
        return framed([each.tobytes() for each in arrays])


def framed(arrays: Sequence[bytes]) -> bytes:
    """Their sum, their lengths, and they."""
    summed = b"".join((_LENGTHS.pack(*map(len, arrays)), *arrays))
    return _SUM.pack(zlib.crc32(summed)) + summed


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


def keep(content: bytes, path: Path) -> None:
    """Write a file whole, in the place of those of other versions.

    What a process left that was killed here goes, too; one that still writes finds this file
    instead.  Raises: OSError.
    """
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_NEW, delete=False) as new:
        written = Path(new.name)
        try:
            new.write(content)
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


def kept_in(path: Path) -> KeptModel | None:
    """What was kept, unless it is missing or damaged; its file stays open."""
    try:
        with path.open("rb") as file:
            (total,) = _SUM.unpack(file.read(_SUM.size))
            summed = 0
            while piece := file.read(_PIECE_BYTES):
                summed = zlib.crc32(piece, summed)
            if summed != total:
                return None
            opened = os.dup(file.fileno())
    except (OSError, struct.error):
        return None
    return _parsed(lambda size, at: os.pread(opened, size, at))


def _slices_of(content: bytes) -> ReadBytes:
    return lambda size, at: content[at : at + size]


def _parsed(read: ReadBytes) -> KeptModel:
    lengths = _LENGTHS.unpack(read(_LENGTHS.size, _SUM.size))
    begins, at = list[int](), _SUM.size + _LENGTHS.size
    for length in lengths:
        begins.append(at)
        at += length
    codes, begin_of, weights, rows, features, following = begins
    code_bytes = read(lengths[0], codes)
    return KeptModel(
        [code_bytes[at : at + 2].decode() for at in range(0, len(code_bytes), 2)],
        array("f", read(lengths[1], begin_of)),
        array("I", read(lengths[3], rows)),
        array("i", read(lengths[4], features)),
        read,
        weights,
        following,
    )
