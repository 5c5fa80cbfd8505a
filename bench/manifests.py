"""What becomes of a folder of connector manifests: accepted, adapted, kept, or why not.

python -m bench.manifests FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.table import Table

from personal_server.domain.declaration_document import parse_declaration
from personal_server.errors import InvalidDeclaration


def run(folder: Path) -> int:
    """Print a line for each manifest; 1 if one is refused."""
    table = Table("manifest", "streams", "read otherwise", "kept, not interpreted", "refused")
    refused = 0
    for path in sorted(folder.glob("*.json")):
        try:
            read = parse_declaration(path.read_bytes())
        except InvalidDeclaration as error:
            refused += 1
            faults = cast("list[dict[str, str]]", error.members["errors"])
            table.add_row(
                path.stem, "", "", "", "; ".join(f"{f['path']} {f['message']}" for f in faults)
            )
            continue
        adapted = sorted({each.path.rsplit("/", 1)[-1] for each in read.adapted})
        kept = sorted({place.rsplit("/", 1)[-1] for place in read.kept})
        table.add_row(path.stem, str(len(read.streams)), ", ".join(adapted), ", ".join(kept), "")
    out = Console(width=200)
    out.print(table)
    out.print(f"{table.row_count} manifests, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1])))
