"""A file of 10 GB through a real Chromium: `python -m tests.browser.large_upload [GIGABYTES]`.

The file is sparse, so that only what the server keeps takes room.  Printed are what is answered
where there is no room for it, then the time, the answer and the peak of the memory of the server
and of what it starts where there is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from selenium.webdriver.support.wait import WebDriverWait

from personal_server.console.uploads import CHUNK_BYTES
from tests.browser.chromium import chromium
from tests.browser.site import Owner
from tests.ports import free_port
from tests.processes import started, stop

GIGABYTE = 1024**3
PDPP = (sys.executable, "-m", "personal_server.cli")
START_SECONDS, SEND_SECONDS, LOOK_SECONDS = 60, 3_600, 0.25


@dataclass
class Serving:
    """`pdpp serve` in a process of its own; `peaks` are those of it and of what it starts."""

    origin: str
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes]
    peaks: dict[str, int] = field(default_factory=dict[str, int])

    def sign_in_link(self) -> str:
        command = [*PDPP, "owner", "link"]
        done = subprocess.run(
            command, env=dict(self.environment), capture_output=True, text=True, check=True
        )
        return next(word for word in (done.stdout + done.stderr).split() if "/owner/enter" in word)

    def watch(self, ended: threading.Event) -> None:
        """Note the peaks until it is over."""
        while not ended.wait(LOOK_SECONDS):
            for pid in descendants(self.process.pid):
                name, peak = peak_of(pid)
                self.peaks[name] = max(self.peaks.get(name, 0), peak)


def descendants(pid: int) -> list[int]:
    """A process, and what it started that still runs."""
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        tasks = Path(f"/proc/{pid}/task").iterdir()
        below += [one for task in tasks for one in (task / "children").read_text().split()]
    except OSError:
        return []
    return [pid, *(one for each in dict.fromkeys(below) for one in descendants(int(each)))]


def peak_of(pid: int) -> tuple[str, int]:
    """What a process is, and the most memory that it held, in bytes."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "gone", 0
    words = [word.decode() for word in command[2:4]]
    line = next((each for each in status.splitlines() if each.startswith("VmHWM")), "VmHWM: 0 kB")
    return " ".join(words) or "gone", int(line.split()[1]) * 1024


@contextmanager
def serving(folder: Path, upload_bytes: int) -> Generator[Serving]:
    """Start a server, and end it."""
    port = free_port()
    own = {
        "PDPP_BIND": f"127.0.0.1:{port}",
        "PDPP_DATA_DIR": str(folder / "data"),
        "PDPP_UPLOAD_BYTES": str(upload_bytes),
        "PDPP_OPEN_BROWSER": "0",
        "PDPP_WORKERS": "1",
    }
    environment = {**os.environ, **own}  # noqa: TID251
    process = started([*PDPP, "serve"], env=environment, stderr=subprocess.DEVNULL)
    ended = threading.Event()
    found = Serving(f"http://127.0.0.1:{port}", environment, process)
    watching = threading.Thread(target=found.watch, args=(ended,))
    watching.start()
    try:
        yield found
    finally:
        ended.set()
        watching.join()
        stop(process)


def sent(place: Serving, path: Path, *said: str) -> str:
    """Send a file and wait until the page says one of these; what it says."""
    with chromium() as driver:
        owner = Owner(driver, place)
        waits = WebDriverWait(driver, START_SECONDS, ignored_exceptions=[Exception])
        waits.until(lambda _: owner.sign_in() or True)
        owner.open(f"{place.origin}/owner/uploads")
        owner.find('input[name="file"]').send_keys(str(path))
        owner.press(owner.find("form.drop button.primary"))
        waits = WebDriverWait(driver, SEND_SECONDS, LOOK_SECONDS, ignored_exceptions=[Exception])
        waits.until(lambda _: any(each in owner.find("main").text for each in said))
        text = owner.find("main").text
        return " / ".join(line for line in text.splitlines() if any(each in line for each in said))


def main() -> None:
    """Send it twice: where there is no room for it, and where there is."""
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else 10) * GIGABYTE)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = folder / "large.mbox"
        with path.open("wb") as out:
            out.truncate(size)
        with serving(folder / "small", size // 2) as place:
            print("no room:", sent(place, path, "enough space"))
            print("kept of it:", sum(1 for _ in (folder / "small/data/uploads").glob("upl_*")))
        with serving(folder / "large", size * 2) as place:
            began = time.monotonic()
            said = sent(place, path, "No records could be read from this file", "Code ")
            print(f"sent and read: {size:,} bytes in {time.monotonic() - began:.0f} s")
            print("answered:", said)
            pieces = -(-size // CHUNK_BYTES)
            print(f"pieces: {pieces:,} of {CHUNK_BYTES:,} bytes at most")
            for name, peak in sorted(place.peaks.items()):
                print(f"most memory of {name}: {peak / 1024**2:.0f} MB")


if __name__ == "__main__":
    main()
