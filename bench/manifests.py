"""What becomes of a folder of connector manifests: accepted, adapted, kept, or why not.

python -m bench.manifests FOLDER      the table of docs/connector-manifests.md
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import cast

from pdpp_kernel.errors import InvalidDeclaration
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.declaration_document import parse_declaration


def run(folder: Path) -> int:
    """Print a line for each manifest; 1 if one is refused."""
    refused = 0
    print(
        "| manifest | streams | | read otherwise | kept, not interpreted |\n|---|---|---|---|---|"
    )
    for path in sorted(folder.glob("*.json")):
        try:
            read = parse_declaration(path.read_bytes())
        except InvalidDeclaration as error:
            refused += 1
            faults = cast("list[dict[str, str]]", error.members["errors"])
            reasons = "; ".join(f"`{f['path']}` {f['message']}" for f in faults)
            print(f"| {path.stem} | | refused | {reasons} | |")
            continue
        cells = (str(len(read.streams)), "accepted", _adapted(read), _kept(read))
        print(f"| {path.stem} | {' | '.join(cells)} |")
    return 1 if refused else 0


def _adapted(read: SourceDeclaration) -> str:
    """What was read otherwise, by where it stands."""
    kinds = Counter(re.sub(r"^/|/\d+(?=/|$)", "", each.path) for each in read.adapted)
    return ", ".join(f"{count} × `{kind}`" for kind, count in sorted(kinds.items()))


def _kept(read: SourceDeclaration) -> str:
    """Members of the manifest by their name, and of its streams each name once."""
    own = {place.split("/")[1] for place in read.kept if not place.startswith("/streams")}
    of_streams = {place.rsplit("/", 1)[-1] for place in read.kept if place.startswith("/streams")}
    streams = f"of streams: {', '.join(sorted(of_streams))}" if of_streams else ""
    return "; ".join(filter(None, (", ".join(sorted(own)), streams)))


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1])))
