"""The terminal of an owner whose server follows something: its commands, and all records."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from bench.site import UNFINISHED, Site


@dataclass
class FedTerminal:
    """Runs commands over one server's data."""

    site: Site

    def pdpp(self, *arguments: str, typed: str = "") -> Any:
        """What a command prints as JSON."""
        done = subprocess.run(
            self.site.command("pdpp", *arguments, "--json"),
            input=typed,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in (0, UNFINISHED):
            sys.exit(f"pdpp {arguments} ended with {done.returncode}: {done.stderr}{done.stdout}")
        return json.loads(done.stdout)

    def lines(self) -> list[dict[str, Any]]:
        """All records, as `pdpp export` writes them, each with its account and stream."""
        path = self.site.folder / "export.ndjson"
        command = self.site.command("pdpp", "export", "--format", "ndjson", str(path))
        subprocess.run(command, check=True, capture_output=True)
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.unlink()
        return [each for each in lines if "key" in each and "data" in each]
