"""The process that embeds: it loads a model, gives up what it does not need, and answers.

`python -m personal_server.semantics.embedding_process FOLDER NICE BYTES`: a line of JSON for each
request on standard input, a line and the vectors on standard output.  It has no network, starts no
process, reads no file any more and writes none, and what it was asked is nowhere when it ends.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import IO, NoReturn

from pdpp_kernel.system.confinement import Limits, confine
from pdpp_kernel.system.landlock import read_only
from personal_server.semantics.model import FolderModel

UNUSABLE, OUT_OF_MEMORY = 2, 3  # exit codes


def main() -> NoReturn:
    """Serve whoever started this process, until it asks no more."""
    folder, niceness, memory_bytes = sys.argv[1:]
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)  # libraries may print, and a terminal obeys letters
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    os.nice(int(niceness))
    try:
        model = FolderModel(Path(folder))
        # what it needs is there now, in this one thread
        size = len(model.embed(["ready"], is_query=False)[0])
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except Exception:  # noqa: BLE001 (the boundary of the process; libraries raise what they like)
        os._exit(UNUSABLE)
    missing = confine(Limits(memory_bytes=int(memory_bytes)))
    read_only(())
    _reply(replies, {"dimensions": size, "unconfined": missing})
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        vectors = model.embed(asked["texts"], is_query=asked["is_query"])
        _reply(replies, {"count": len(vectors)}, b"".join(vectors))
    os._exit(0)


def _reply(replies: IO[bytes], members: dict[str, object], content: bytes = b"") -> None:
    replies.write(json.dumps(members).encode() + b"\n" + content)
    replies.flush()


if __name__ == "__main__":
    main()
