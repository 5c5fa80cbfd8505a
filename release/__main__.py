"""`make dist`: everything that a release needs, in one folder, made of this checkout.

    dist/pdpp_kernel-0.1.0-py3-none-any.whl …   wheels of the four parts
    dist/pdpp-0.1.0-linux-x86_64                the program, with a Python of its own
    dist/pdpp-mcp-server-0.1.0-linux-x86_64.mcpb the adapter as a bundle for desktop hosts
    dist/server.json                            what a registry of MCP servers asks for
    dist/sbom.cdx.json                          what is in it
    dist/SHA256SUMS, SHA256SUMS.sig, signer.pem digests of all, signed by whom

`python -m release FOLDER [--key FILE] [--address URL] [--registry-schema FILE]`; docs/releasing.md
says how it is published.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from pages.parts import PACKAGES, ROOT
from release.bundle import bundle_name, write_bundle
from release.program import file_name, write_program
from release.registry_entry import faults, write_entry
from release.signed_digests import write_digests


def main() -> None:
    """Make everything, and say how large each is."""
    asked = argparse.ArgumentParser(prog="python -m release", description="Make a release.")
    asked.add_argument("folder", type=Path)
    asked.add_argument("--key", type=Path, help="Ed25519 private key (PEM) that signs the digests")
    asked.add_argument("--address", help="folder on the web where the files will lie")
    asked.add_argument("--registry-schema", type=Path, help="schema that server.json has to fit")
    given = asked.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if any(given.folder.iterdir()):
        sys.exit(f"{given.folder} is not empty: a release is all that lies in a folder.")
    made_at, version = commit_time(), version_of_this()
    with tempfile.TemporaryDirectory(prefix="pdpp-release-") as name:
        work = Path(name)
        wheels = write_wheels(given.folder, made_at)
        tell(*wheels)
        subprocess.run([sys.executable, "-m", "pages.sbom", str(given.folder)], check=True)
        program = given.folder / file_name(version)
        write_program(program, wheels, work, made_at)
        tell(program)
        bundle = given.folder / bundle_name(version)
        write_bundle(bundle, wheels, version, work, made_at)
        tell(bundle)
    write_entry(given.folder / "server.json", version, bundle, given.address)
    if given.registry_schema is not None:
        check_entry(given.folder / "server.json", given.registry_schema)
    write_digests(given.folder, given.key)
    if given.key is None:
        print("SHA256SUMS is not signed: --key FILE names the key that does.", file=sys.stderr)


def write_wheels(folder: Path, seconds: int) -> list[Path]:
    """The wheels of the parts.  Units: Unix seconds."""
    parts = [str(package.parents[1]) for package in PACKAGES.values()]
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    alone = ["--no-deps", "--no-build-isolation", "--no-index", f"--wheel-dir={folder}"]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds)}  # noqa: TID251 (for the builder)
    subprocess.run([*pip, *alone, *parts], check=True, env=environ)
    return sorted(folder.glob("*.whl"))


def check_entry(written: Path, schema: Path) -> None:
    """End with what is wrong with `server.json`, if anything is."""
    found = faults(json.loads(written.read_bytes()), schema)
    if found:
        sys.exit("server.json does not fit the schema of the registry:\n" + "\n".join(found))
    print(f"server.json fits {schema.name}", flush=True)


def commit_time() -> int:
    """When this checkout was committed, as every file of the release says.  Units: Unix seconds."""
    words = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def version_of_this() -> str:
    """The version of all four parts."""
    with (ROOT / "server" / "pyproject.toml").open("rb") as stated:
        return str(tomllib.load(stated)["project"]["version"])


def tell(*files: Path) -> None:
    """One line for what was made."""
    for path in files:
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
