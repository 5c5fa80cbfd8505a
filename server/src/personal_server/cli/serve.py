"""`pdpp serve`: the server in the foreground, by this process or by several that it supervises."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter, validators

from pdpp_kernel import long_life
from pdpp_kernel.errors import StorageReadOnly
from pdpp_kernel.system.memory_images import forbid_core_dumps
from pdpp_mcp_server.commands.failures_shown import CommandError
from personal_server.app.database_claims import claim_database, is_served
from personal_server.app.shared_memory import SharedMemory
from personal_server.app.signals import stop_before_serving
from personal_server.app.supervisor import Supervisor, workers_by_default
from personal_server.app.worker_processes import (
    WorkerCopies,
    WorkerPrograms,
    WorkerRole,
    Workers,
)
from personal_server.cli.server_log import open_log
from personal_server.cli.server_settings import settings_or_exit
from personal_server.settings import MOST_WORKERS, Settings

NOBODY: Final = -1
# Every address that answers for `localhost`, and the one beside it that does so too.
OTHER_LOOPBACK: Final = {
    "127.0.0.1": "::1",
    "0.0.0.0": "::1",  # noqa: S104 (compared)
    "::1": "127.0.0.1",
}
WORKER: Final = (sys.executable, "-P", "-m", "personal_server.cli.serving_process")


def serve(
    *,
    port: Annotated[int | None, Parameter(validator=validators.Number(gte=0, lte=65_535))] = None,
    data_dir: Path | None = None,
    workers: Annotated[
        int | None, Parameter(validator=validators.Number(gte=1, lte=MOST_WORKERS))
    ] = None,
) -> int:
    """Start the server at PDPP_BIND. It runs until Ctrl-C or a signal (SIGTERM, SIGHUP) stops it.

    Parameters
    ----------
    port
        Listen on this port instead of the port in PDPP_BIND.
    data_dir
        Keep all data in this folder instead of the one in PDPP_DATA_DIR; other commands then need
        PDPP_DATA_DIR set to this folder.
    workers
        Use this many processes instead of PDPP_WORKERS; 1 means only this process.
    """
    long_life.put_off()
    stop_before_serving()
    forbid_core_dumps()
    settings = settings_or_exit(port, data_dir)
    log_file = open_log(settings)
    count = workers or settings.workers or workers_by_default()
    with ExitStack() as stack:
        callers = stack.enter_context(_listening_for_callers(settings))
        figures = stack.enter_context(figures_listener(settings))
        claim = NOBODY if count == 1 else _claim_together(settings)
        if claim == NOBODY:
            # whoever only supervises others needs nothing of what serves
            from personal_server.cli.serving_process import serve_alone  # noqa: PLC0415

            serve_alone(settings, log_file, callers, figures)
            return 0
        memory = SharedMemory.make(count)
        role = WorkerRole(
            number=-1,
            of=count,
            listeners=tuple(listener.fileno() for listener in callers),
            figures=figures and figures.fileno(),
            memory=memory.descriptor,
            claim=claim,
            port=port,
            data_dir=data_dir and str(data_dir),
        )
        supervisor = Supervisor(role, memory, workers_of(sys.platform))
        long_life.leave_what_is_there()
        return supervisor.run()


def workers_of(platform: str) -> Workers:
    """What begins workers there: copies of this process where the system bears it."""
    if platform != "linux":
        return WorkerPrograms(WORKER)
    # imported once, for all of them
    from personal_server.cli.serving_process import work  # noqa: PLC0415

    return WorkerCopies(work)


@contextmanager
def _listening_for_callers(settings: Settings) -> Generator[list[socket.socket], None, None]:
    """The sockets of the server; who starts it twice is told that it runs.

    Raises: CommandError (`unavailable`).
    """
    with ExitStack() as stack:
        try:
            callers = stack.enter_context(
                listening_by_every_name(settings.bind_host, settings.bind_port)
            )
        except CommandError:
            if not is_served(settings):
                raise
            raise CommandError(
                "unavailable",
                f"A server is already running on {settings.data_dir}.",
                (
                    "Sign in to the running server with `pdpp owner link`. Stop it "
                    "with Ctrl-C in its terminal, or with `pdpp service remove`."
                ),
            ) from None
        yield callers


def _claim_together(settings: Settings) -> int | None:
    """What several processes hold together: nothing (`None`) of a server of databases.

    On a disk that cannot be written one process serves alone (`NOBODY`).
    Raises: DatabaseInUse, DataNotOwned, StorageUnavailable.
    """
    try:
        return claim_database(settings)
    except StorageReadOnly:
        return NOBODY


def figures_listener(settings: Settings) -> AbstractContextManager[socket.socket | None]:
    """Where the figures are asked for, if anywhere.  Raises: CommandError (`unavailable`)."""
    if settings.metrics_bind is None:
        return nullcontext()
    return listening(*settings.metrics_bind, "PDPP_METRICS_BIND")


@contextmanager
def listening_by_every_name(host: str, port: int) -> Generator[list[socket.socket], None, None]:
    """The listening sockets of an address, and of the other one that `localhost` stands for.

    Browsers try `::1` first. Whoever listens there is `localhost` to the owner's browser: the
    passkeys, cookies and tokens of this server would go to another user of the machine.
    Raises: CommandError (`unavailable`).
    """
    other = OTHER_LOOPBACK.get(host)
    with ExitStack() as stack:
        sockets = [stack.enter_context(listening(host, port))]
        if other is not None and has_address(other):
            sockets.append(_other_loopback(stack, other, sockets[0].getsockname()[1]))
        yield sockets


def _other_loopback(stack: ExitStack, host: str, port: int) -> socket.socket:
    try:
        return stack.enter_context(listening(host, port))
    except CommandError as error:
        raise CommandError(
            "unavailable",
            f"{error.failure.message} A browser that opens http://localhost:{port} could reach"
            " that program instead of this server, and sign you in there.",
            f"See which program uses it: ss -ltnp 'sport = :{port}'. End it, or choose another port"
            f" for every command: export PDPP_BIND=127.0.0.1:{port + 1}",
        ) from None


def has_address(host: str) -> bool:
    """Whether this machine has an address: there may be no IPv6 on it."""
    try:
        with socket.socket(_family_of(host), socket.SOCK_STREAM) as trial:
            trial.bind((host, 0))
    except OSError:
        return False
    return True


def _family_of(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


@contextmanager
def listening(
    host: str, port: int, variable: str = "PDPP_BIND"
) -> Generator[socket.socket, None, None]:
    """The listening socket; taken before anything else, so that a busy port costs nothing.

    Raises: CommandError (`unavailable`).
    """
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    # Named as TCP, or asyncio leaves Nagle's delay on and small answers take 40 ms.
    with socket.socket(_family_of(host), socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if host == "::1":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            sentence = {
                errno.EADDRINUSE: f"Another program already listens on {address}.",
                errno.EADDRNOTAVAIL: f"{host} is not an address of this machine.",
                errno.EACCES: (
                    f"Listening on {address} needs administrator rights; ports from 1024 up do not."
                ),
            }.get(error.errno or 0, f"The server cannot listen on {address}.")
            step = (
                f"Choose another address, for every command: export {variable}=127.0.0.1:{port + 1}"
            )
            raise CommandError("unavailable", sentence, step) from None
        yield listener
