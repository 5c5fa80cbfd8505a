"""What `make dist` made, tried: `python -m tests.release_trial FOLDER MCPB` (`make dist-test`).

It needs root and debootstrap. The digests are compared by the system's own program; the program
runs in a root of Debian's smallest system, which has no Python, as a user without rights: from
nothing to an answer over MCP. The wheels do so in one that has Python besides, and are upgraded by
`pdpp upgrade`, once by some that do not start. The bundle is
checked by the public tool MCPB and started as its manifest says, by a host that has the PATH of a
desktop's session.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bench.clients import StdioCaller
from personal_server.consent.credentials import base64url
from release.signed_digests import write_digests
from tests.image.__main__ import MBOX, OWN, USER, fetch_locked, until
from tests.ports import free_port
from tests.processes import started, stop

HOME = "/home/owner"
SMALLEST, WITH_PYTHON = Path(".cache/smallest"), Path(".cache/smallest-python")
SELECTION = [
    {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": "https://registry.pdpp.dev/connectors/mail"},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{"name": "messages", "fields": ["id", "subject", "sent_at"]}],
    }
]
ASKED = {"stream": "messages", "limit": 5}


class Root:
    """A system without Python, and a user in it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self._variables = [f"HOME={HOME}", "PATH=/usr/bin:/bin", f"PDPP_BIND=127.0.0.1:{port}"]

    @property
    def home(self) -> Path:
        """The user's folder."""
        return self.folder / HOME.lstrip("/")

    def words(self, *words: str) -> list[str]:
        """A command as the user gives it there."""
        chroot = ["/usr/sbin/chroot", f"--userspec={USER}:{USER}", "--groups=", str(self.folder)]
        return [
            *chroot,
            "/usr/bin/env",
            "-i",
            *self._variables,
            "sh",
            "-c",
            f'cd {HOME} && exec "$@"',
            "sh",
            *words,
        ]

    def run(self, *words: str) -> str:
        """What a command prints; it must succeed."""
        done = subprocess.run(self.words(*words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout


def main(folder: Path, mcpb: Path) -> None:
    """Try everything."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        sys.exit("This needs root and debootstrap.")
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    print("digests: as SHA256SUMS says", flush=True)
    with tempfile.TemporaryDirectory(prefix="pdpp-dist-") as name, emptied(SMALLEST) as root:
        assert not list(root.folder.glob("usr/bin/python*"))
        served = root.folder / HOME.lstrip("/") / ".pdpp"
        with tried(root, "program", lambda root: program_installed(root, folder)) as address:
            bundle = Path(name) / "bundle"
            try_bundle(next(folder.glob("*.mcpb")), mcpb, bundle, served, address)
    with emptied(WITH_PYTHON, "python3", "python3-venv") as root:
        with tried(root, "wheels", lambda root: wheels_installed(root, folder)):
            pass
        try_upgrade(root, folder)


@contextmanager
def emptied(system: Path, *packages: str) -> Generator[Root]:
    """A copy of the smallest system with some packages besides, and what the kernel shows."""
    if not system.is_dir():
        system.parent.mkdir(parents=True, exist_ok=True)
        besides = [f"--include={','.join(packages)}"] if packages else []
        made = ["debootstrap", "--variant=minbase", *besides, "stable", str(system)]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(prefix="pdpp-root-") as name:
        root = Path(name) / "root"
        subprocess.run(["cp", "-a", str(system), str(root)], check=True)
        with shown(root):
            yield Root(root, free_port())


@contextmanager
def shown(root: Path) -> Generator[None]:
    """A home in it, and what the kernel shows there."""
    home = root / HOME.lstrip("/")
    home.mkdir(parents=True)
    os.chown(home, USER, USER)
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    subprocess.run(["mount", "--bind", "/dev", str(root / "dev")], check=True)
    try:
        yield
    finally:
        for place in ("proc", "dev"):
            subprocess.run(["umount", str(root / place)], check=True)


def program_installed(root: Root, release: Path) -> str:
    """The program of one file, as it is downloaded; how it is called."""
    shutil.copy2(next(release.glob("pdpp-*-linux-*[!b]")), root.home / "pdpp")
    return "./pdpp"


def wheels_installed(root: Root, release: Path) -> str:
    """The wheels, in an environment of their own; how the program is called.

    The packages that they need come from a folder, as an index would give them.
    """
    version = root.run("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    fetch_locked(root.home / "packages", version, OWN)
    for wheel in release.glob("*.whl"):
        shutil.copy2(wheel, root.home / "packages")
    root.run("python3", "-m", "venv", "app")
    install = ("app/bin/pip", "install", "--quiet", "--no-index", "--find-links=packages")
    root.run(*install, "pdpp-personal-server")
    return "app/bin/pdpp"


def try_upgrade(root: Root, release: Path) -> None:
    """Replace the wheels by others that do not start, then by some that do."""
    program = ("env", "PIP_NO_INDEX=1", f"PIP_FIND_LINKS={HOME}/packages", "app/bin/pdpp")
    for name, works in (("spoiled", False), ("whole", True)):
        begun = time.monotonic()
        signer = sign_wheels(release, root.home / name, works=works)
        asked = [*program, "upgrade", name, "--signer", signer]
        done = subprocess.run(root.words(*asked), capture_output=True, text=True, check=False)
        assert done.returncode == (0 if works else 69), (done.stdout, done.stderr)
        assert "Lunch" in root.run("app/bin/pdpp", "search", "noon")
        print(f"upgrade by {name} wheels: {'done' if works else 'put back'}, {since(begun)}")
    assert (root.home / "app.previous").is_dir()


def sign_wheels(release: Path, folder: Path, *, works: bool) -> str:
    """A folder with the wheels of a release, signed by a new key, which is returned."""
    folder.mkdir()
    for wheel in release.glob("*.whl"):
        shutil.copy2(wheel, folder)
    if not works:
        server = next(folder.glob("pdpp_personal_server-*.whl"))
        with warnings.catch_warnings(), zipfile.ZipFile(server, "a") as packed:
            warnings.simplefilter("ignore", UserWarning)  # a second one of that name, on purpose
            packed.writestr("personal_server/cli/serve.py", "raise SystemExit(1)\n")
    private = Ed25519PrivateKey.generate()
    key = folder.with_suffix(".key")
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    write_digests(folder, key)
    for path in (folder, *folder.iterdir()):
        os.chown(path, USER, USER)
    return base64url(private.public_key().public_bytes_raw())


@contextmanager
def tried(root: Root, what: str, install: Callable[[Root], str]) -> Generator[str]:
    """From nothing to an answer; the address that it serves meanwhile."""
    begun = time.monotonic()
    for name, text in (("inbox.mbox", MBOX), ("selection.json", json.dumps(SELECTION))):
        (root.home / name).write_text(text)
        os.chown(root.home / name, USER, USER)
    pdpp = install(root)
    print(f"{what}: {root.run(pdpp, '--version').strip()}, {since(begun)} to its first answer")
    root.run(pdpp, "import", "inbox.mbox")
    found = root.run(pdpp, "search", "noon")
    assert "Lunch" in found, found
    named = (
        "--client",
        "Host",
        "--from",
        "selection.json",
        "--cache-root",
        f"{HOME}/.pdpp",
        "--yes",
    )
    root.run(pdpp, "grant", "create", *named)
    process = started(root.words(pdpp, "serve"), stderr=subprocess.DEVNULL)
    try:
        until(lambda: process.poll() is not None or not _unsound(root, pdpp))
        assert process.poll() is None
        assert root.run(pdpp, "doctor", "--json")
        address = json.loads(root.run(pdpp, "status", "--json", "--cache-root", f"{HOME}/.pdpp"))
        host = [*root.words(pdpp, "mcp", "--cache-root", f"{HOME}/.pdpp")]
        answered(host, {})
        print(f"{what}: import, search, serve and an answer over MCP, {since(begun)} from nothing")
        yield address[0]["provider_url"]
    finally:
        stop(process)


def _unsound(root: Root, pdpp: str) -> bool:
    return bool(subprocess.run(root.words(pdpp, "doctor"), capture_output=True).returncode)


def try_bundle(packed: Path, mcpb: Path, folder: Path, cache: Path, address: str) -> None:
    """Check a bundle by the public tool, and start it as its manifest says."""
    begun = time.monotonic()
    with zipfile.ZipFile(packed) as opened:
        opened.extractall(folder)
    (folder / "bin" / "uv").chmod(0o755)  # as a host that unpacks a bundle does
    subprocess.run([str(mcpb), "validate", str(folder / "manifest.json")], check=True)
    # a saved access is taken from its owner alone, and the host runs as this user
    own = folder / "access"
    subprocess.run(["cp", "-r", "--preserve=mode", str(cache), str(own)], check=True)
    stated = json.loads((folder / "manifest.json").read_text())["server"]["mcp_config"]
    values = {
        "__dirname": str(folder),
        "user_config.folder": str(own),
        "user_config.server": address,
    }
    command = [_filled(word, values) for word in (stated["command"], *stated["args"])]
    answered(command, {name: _filled(text, values) for name, text in stated["env"].items()})
    print(f"bundle: {packed.stat().st_size / 1e6:.1f} MB, {since(begun)} to an answer over MCP")


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("${" + name + "}", value)
    return text


def answered(command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Ask an adapter that a host starts for the one message."""
    with StdioCaller(
        list(command), {"HOME": str(Path.home()), "PATH": "/usr/bin:/bin", **environ}
    ) as host:
        page = host.call("query_records", ASKED)["structuredContent"]["data"]["data"]
        assert [record["data"]["subject"] for record in page] == ["Lunch"], page


def since(begun: float) -> str:
    """How long that took."""
    return f"{time.monotonic() - begun:.1f} s"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
