"""The container image, built and run: `python -m tests.image [BASE] [--processor arm64]`.

It needs root, Linux and buildah, and takes some minutes. BASE is an image of this machine with
Python; without one Debian's is made by debootstrap. Packages are fetched by pip as it is configured
here and handed to the build in a folder. No runtime of containers is
needed: the process is started with what the image says, in a mount and a network of its own, with a
root that cannot be written, as a user without rights.

Another processor is played by qemu, where the kernel knows it (Debian's `qemu-user-static` and
`binfmt-support`), several times as slowly.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from tests.processes import started, stop

ROOT = Path(__file__).parents[2]
BASE, IMAGE = "localhost/pdpp-base", "localhost/pdpp-test"
OWN = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
GLIBC = ("manylinux2014", *(f"manylinux_2_{minor}" for minor in range(17, 42)))
USER = 10_001
SECONDS = 600
MBOX = """From ada@example.org Mon Jan  5 10:00:00 2026
From: Ada <ada@example.org>
To: Bo <bo@example.org>
Subject: Lunch
Date: Mon, 05 Jan 2026 10:00:00 +0000
Message-ID: <m1@example.org>

At noon.
"""
WRITE = "import errno, sys\ntry: open(sys.argv[1], 'w')\nexcept OSError as e: sys.exit(e.errno)"
# the root as it is shown to the process, what it may write, and a network with nothing but itself
ENTER = """
set -e
mount --make-rprivate /
mount --bind "$0" "$0"
mount -o remount,bind,ro "$0"
mount -t proc proc "$0/proc"
mount -t tmpfs -o size=16m tmpfs "$0/tmp"
mount --rbind /dev "$0/dev"
mount --bind "$1" "$0/data"
ip link set lo up
exec "${@:2}"
"""


@dataclass
class Container:
    """What an image says about its process, and the process."""

    root: Path
    data: Path
    config: dict[str, Any]
    process: subprocess.Popen[str] | None = None

    def inside(self, words: Sequence[str]) -> list[str]:
        """The words of a process that has changed to the root, without rights."""
        user, _, group = str(self.config["User"]).partition(":")
        variables = [*self.config["Env"], "PDPP_OWNER_PASSWORD_FILE=/data/password"]
        chroot = ["chroot", f"--userspec={user}:{group}", "--groups=", str(self.root)]
        return ["setpriv", "--no-new-privs", *chroot, "env", "-i", *variables, *words]

    def start(self) -> None:
        """Start what the image starts."""
        words = self.inside([*self.config["Entrypoint"], *self.config["Cmd"]])
        spaces = ["unshare", "--mount", "--net"]
        command = [*spaces, "bash", "-c", ENTER, str(self.root), str(self.data), *words]
        self.process = started(command, stderr=subprocess.PIPE, text=True)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run something beside it."""
        assert self.process is not None
        beside = ["nsenter", "--target", str(self.process.pid), "--mount", "--net"]
        return subprocess.run(
            [*beside, *self.inside(words)], capture_output=True, text=True, check=False
        )


def main() -> None:
    """Build, run, look, stop."""
    asked = argparse.ArgumentParser(prog="python -m tests.image")
    asked.add_argument("base", nargs="?", help="an image with Python; Debian's if none is named")
    asked.add_argument("--processor", choices=MACHINES, default=OWN)
    given = asked.parse_args()
    if os.geteuid() != 0 or shutil.which("buildah") is None:
        sys.exit("This needs root and buildah.")
    with tempfile.TemporaryDirectory(prefix="pdpp-image-") as name:
        folder = Path(name)
        built = build(folder, given.base or debian(given.processor), given.processor)
        built_for = f"{built['size_mb']} MB, {given.processor}, user {built['config']['User']}"
        told("image built", built_for)
        working = output("buildah", "from", "--pull-never", IMAGE)
        try:
            root = Path(output("buildah", "mount", working))
            try_out(Container(root, data_of(folder), built["config"]), built["check"])
        finally:
            output("buildah", "rm", working)


def build(folder: Path, base: str, processor: str) -> dict[str, Any]:
    """The image, of this checkout; what it says of itself."""
    wheels = folder / "wheels"
    fetch_locked(wheels, python_of(base), processor)
    fetched = ("--build-arg=PIP_FIND_LINKS=/wheels", "--build-arg=PIP_NO_INDEX=1")
    options = (f"--build-arg=BASE={base}", *fetched, f"--volume={wheels}:/wheels:ro")
    form = ("--format=docker", "--isolation=chroot", "--pull-never", f"--arch={processor}")
    output("buildah", "build", "--quiet", *form, f"--tag={IMAGE}", *options, str(ROOT))
    docker = json.loads(output("buildah", "inspect", "--type=image", IMAGE))["Docker"]
    size = json.loads(output("buildah", "images", "--json", IMAGE))[0]["size"]
    config = docker["config"]
    return {"config": config, "check": config["Healthcheck"], "size_mb": size.split()[0]}


def fetch_locked(folder: Path, python: str, processor: str) -> None:
    """The locked packages, as that Python on that processor takes them."""
    folder.mkdir(parents=True)
    lock = folder / "locked.txt"
    lock.write_text(locked_for(python), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    where = [f"--platform={libc}_{MACHINES[processor]}" for libc in GLIBC]
    wanted = ["--require-hashes", f"--python-version={python}", *where]
    output(*pip, *wanted, f"-r{lock}", f"-d{folder}")


def locked_for(python: str) -> str:
    """What is locked for that Python: pip judges markers by the Python that runs it."""
    version = {"python_version": python, "python_full_version": f"{python}.0"}
    kept: list[str] = []
    for name in ("build.txt", "run.txt"):
        text = ROOT.joinpath("requirements", name).read_text(encoding="utf-8")
        for package in re.findall(r"^[^\s#].*(?:\n[ #].*)*", text, re.MULTILINE):
            head, _, hashes = package.partition(" \\\n")
            wanted = Requirement(head)
            if wanted.marker is None or wanted.marker.evaluate(version):
                kept.append(f"{wanted.name}{wanted.specifier} \\\n{hashes}")
    return "\n".join(kept)


def python_of(base: str) -> str:
    """Which Python a base has."""
    working = output("buildah", "from", "--pull-never", base)
    try:
        ask = "import sys; print('%d.%d' % sys.version_info[:2])"
        return output("buildah", "run", "--isolation=chroot", working, "python3", "-c", ask)
    finally:
        output("buildah", "rm", working)


def debian(processor: str) -> str:
    """A base of Debian's packages, made once."""
    name = f"{BASE}-{processor}"
    if subprocess.run(["buildah", "inspect", "--type=image", name], capture_output=True).returncode:
        with tempfile.TemporaryDirectory(prefix="pdpp-base-") as folder:
            packages = "--include=python3,python3-venv,python3-pip"
            made = ("--variant=minbase", f"--arch={processor}", packages)
            output("debootstrap", *made, "stable", folder)
            working = output("buildah", "from", "scratch")
            output("buildah", "config", f"--arch={processor}", working)
            output("buildah", "add", "--quiet", working, folder, "/")
            output("buildah", "commit", "--quiet", "--rm", working, name)
    return name


def data_of(folder: Path) -> Path:
    """A volume, as its owner has it: with an export and the password."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    (data / "inbox.mbox").write_text(MBOX)
    (data / "password").write_text("correct horse battery staple")
    for path in (data, *data.iterdir()):
        os.chown(path, USER, USER)
    return data


def try_out(container: Container, check: dict[str, Any]) -> None:
    """Everything that is said of it in docs/running.md."""
    begun = time.monotonic()
    container.start()
    process = container.process
    assert process is not None
    try:
        probe = check["Test"][1:]
        until(lambda: process.poll() is not None or not container.run(*probe).returncode)
        assert process.poll() is None, process.communicate()[1]
        told("health check", "ready")
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
        facts = dict(line.split(":", 1) for line in status)
        assert set(facts["Uid"].split()) == set(facts["Gid"].split()) == {str(USER)}
        assert int(facts["CapEff"], 16) == int(facts["CapPrm"], 16) == 0
        assert facts["NoNewPrivs"].strip() == "1"
        told("process", f"user {USER}, no capability, no new privileges")
        python = "/opt/pdpp/bin/python"
        for path in ("/written", "/opt/pdpp/written", "/usr/written"):
            refused = container.run(python, "-c", WRITE, path).returncode
            assert refused == 30, (path, refused)  # EROFS
        told("root", "read-only")
        imported = container.run("pdpp", "import", "/data/inbox.mbox", "--json")
        assert imported.returncode == 0, imported.stderr
        assert "Lunch" in container.run("pdpp", "search", "noon").stdout
        told("answer", f"the message is found, {time.monotonic() - begun:.1f} s after the start")
        lines = container.run("pdpp", "export").stdout
        assert "At noon." in lines
        told("import", "1 message, and it is in the export")
        sound = container.run("pdpp", "doctor")
        assert sound.returncode == 0, sound.stdout
        told("pdpp doctor", " ".join(sound.stdout.split()))
        assert stop(process, seconds=30) == 0
        store = container.data / "store"
        assert not list(store.glob("*-wal"))
        told("SIGTERM", "exit 0, everything in one file")
    finally:
        process.kill()
        process.communicate()


def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition.  Raises: TimeoutError."""
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.2)


def told(what: str, how: str) -> None:
    """One line for what was seen."""
    print(f"{what:16} {how}", flush=True)


def output(*words: str) -> str:
    """What a program prints.  Raises: SystemExit, with what it said."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
