"""The process that serves: `pdpp serve` itself, or one of several that it starts.

Rule: one of several is told its role (`WorkerRole`); as a program it has no other use.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from rich.console import Console
from rich.markup import escape
from starlette.types import ASGIApp

from pdpp_kernel import long_life
from pdpp_kernel.system.memory_images import forbid_core_dumps
from pdpp_kernel.system.process_resources import raise_descriptor_limit, share_one_heap
from pdpp_mcp_server.commands.exits import INTERRUPTED
from pdpp_mcp_server.commands.failures_shown import (
    CommandError,
    failure_of,
    print_failure,
)
from pdpp_mcp_server.settings import has_desktop, own_command
from personal_server.app.connections import (
    Connections,
    connections_within,
)
from personal_server.app.http_server import HttpServer, SecondListener
from personal_server.app.server import Server, Share, open_server
from personal_server.app.shared_memory import Seat, SharedMemory
from personal_server.app.signals import end_in_time, stop_before_serving
from personal_server.app.stores import command_origin
from personal_server.app.supervisor import ALONE, READY
from personal_server.app.tallies import EVERY_SECONDS as TALLIES_EVERY_SECONDS
from personal_server.app.tallies import Tallies
from personal_server.app.worker_processes import WorkerRole
from personal_server.cli.served_address import note_address
from personal_server.cli.server_log import open_log
from personal_server.cli.server_settings import settings_or_exit
from personal_server.cli.tunnels import tunnel
from personal_server.domain.hosts import host_connections, mcp_url
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.passkeys import has_passkey
from personal_server.settings import Settings, ssh_connection
from personal_server.web.log_file import LogFile

SHORTEST_TOKEN = 32
SIGN_IN_PAGE = "sign-in.html"


def main() -> int:
    """Serve in the place that `sys.argv[1]` says; the exit code."""
    return work(msgspec.json.decode(sys.argv[1], type=WorkerRole))


def work(role: WorkerRole) -> int:
    """Serve in that place; the exit code."""
    long_life.put_off()
    try:
        serve_as(role)
    except (KeyboardInterrupt, SystemExit):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 (the boundary of the command line)
        failure = failure_of(error)
        print_failure(failure, as_json=False, out=sys.stdout, err=sys.stderr)
        return failure.exit_code
    return 0


def serve_as(role: WorkerRole) -> None:
    """Serve with what was inherited."""
    stop_before_serving()
    forbid_core_dumps()
    for descriptor in role.inherited:
        os.set_inheritable(descriptor, False)  # no process of ours gets it in its turn
    data_dir = None if role.data_dir is None else Path(role.data_dir)
    settings = settings_or_exit(role.port, data_dir)
    log_file = open_log(settings)
    share = Share(SharedMemory(role.memory, Seat(role.number, role.of)), role.claim)
    has_figures = role.figures is not None and role.leads
    figures = socket.socket(fileno=role.figures) if has_figures else None
    callers = [socket.socket(fileno=descriptor) for descriptor in role.listeners]
    listeners = Listeners(callers, figures)
    line = socket.socket(fileno=role.line)
    _serve(settings, log_file, listeners, share, greets=role.is_first, line=line)


def serve_alone(
    settings: Settings,
    log_file: LogFile | None,
    callers: Sequence[socket.socket],
    figures: socket.socket | None,
) -> None:
    """Serve until a signal, as the only process."""
    _serve(settings, log_file, Listeners(callers, figures), Share(), greets=True)


class Listeners(msgspec.Struct, frozen=True):
    """Where callers come, and where figures are asked for, if anywhere."""

    callers: Sequence[socket.socket]
    figures: socket.socket | None


def _serve(
    settings: Settings,
    log_file: LogFile | None,
    listeners: Listeners,
    share: Share,
    *,
    greets: bool,
    line: socket.socket | None = None,
) -> None:
    """Serve by this process until a signal, or until nobody is at the other end of the line."""
    share_one_heap()
    with open_server(settings, share=share) as server:
        require_password(server.sign_in, settings)
        for listener in listeners.callers:
            listener.listen()  # from here on callers wait instead of being refused
        if greets:
            note_address(settings.data_dir, server.origin)
            greet(server, settings, Console(stderr=True, highlight=False))
        most = connections_within(settings.max_connections, raise_descriptor_limit())
        connections = Connections(-(-most // share.processes), settings.stalled_seconds)
        server.health.register(connections.faults)
        if log_file is not None:
            server.health.register(log_file.faults)
        tallies = Tallies(share.memory, server, connections)
        if settings.metrics_bind is not None and share.memory is not None:
            server.background.register("counting", TALLIES_EVERY_SECONDS, tallies.tell)
        second = None
        if listeners.figures is not None:
            figures = figures_app(settings, server, tallies)
            second = SecondListener(figures, listeners.figures)
        long_life.leave_what_is_there()
        if line is not None:
            _say_ready(line, ALONE if server.stores.database.is_read_only else READY)
        at_stop = server.end_listeners
        try:
            http = HttpServer(server.app, connections, second, line, at_stop, end_in_time)
            http.serve_on(listeners.callers)
        finally:
            if greets:
                with suppress(OSError):  # on a disk that cannot be written there is none
                    (settings.data_dir / SIGN_IN_PAGE).unlink(missing_ok=True)


def _say_ready(line: socket.socket, word: bytes) -> None:
    """Say to whoever supervises that callers may come.

    Raises: CommandError (`unavailable`), where nobody does any more: whoever started us was ended,
    and whoever starts it again needs the place that this process would keep.
    """
    try:
        line.send(word)
    except OSError:
        raise CommandError(
            "unavailable",
            "The process that started this one has ended, so this one ends, too.",
            "Start the server again: pdpp serve",
        ) from None


def require_password(sign_in: OwnerSignIn, settings: Settings) -> None:
    """Set the password of PDPP_OWNER_PASSWORD_FILE on first start; without one stay on loopback.

    Source: docs/contract/authorization-server.md 13.1.  Raises: CommandError (`config`).
    """
    path = settings.owner_password_file
    if path is not None and not sign_in.has_password():
        sign_in.set_password(_text_of(path, "PDPP_OWNER_PASSWORD_FILE"))
    known = sign_in.has_password() or has_passkey(sign_in.store, command_origin(settings))
    if not settings.is_loopback and not known:
        raise CommandError(
            "config",
            "The server would be reachable from outside, but its owner could not sign in there.",
            "Set a password: pdpp owner password",
        )


def figures_app(settings: Settings, server: Server, tallies: Tallies) -> ASGIApp:
    """What answers there.  Raises: CommandError (`config`)."""
    # the library of the format is loaded by those alone who asked for it
    from personal_server.app.figures import FiguresApp, ServerFigures  # noqa: PLC0415

    token = None
    if settings.metrics_token_file is not None:
        token = _text_of(settings.metrics_token_file, "PDPP_METRICS_TOKEN_FILE")
        if len(token) < SHORTEST_TOKEN:
            raise CommandError(
                "config",
                (
                    "The token in the file that PDPP_METRICS_TOKEN_FILE names has "
                    f"fewer than {SHORTEST_TOKEN} characters."
                ),
                "Make a new token: openssl rand -hex 32 > FILE",
            )
    return FiguresApp(ServerFigures(server, tallies), token)


def _text_of(path: Path, variable: str) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise CommandError(
            "config",
            f"The file that {variable} names cannot be read.",
            "Name a file of your own that contains nothing else.",
        ) from None


def greet(server: Server, settings: Settings, console: Console) -> None:
    """Say where the server is, how the owner signs in, what comes first, how each host connects.

    On a person's own desktop the link is opened, too, unless a browser is signed in already.
    """
    origin, own = server.origin, escape(own_command())
    console.print(f"\n[bold]{escape(settings.server_name)}[/] at [link={origin}]{origin}[/link]")
    if server.stores.database.is_read_only:
        console.print(
            "  [bold]read-only[/]: the server cannot write anything, so no browser can sign in"
        )
    elif sys.stderr.isatty() and settings.is_loopback:
        opens = settings.open_browser and has_desktop() and not server.sign_in.sessions()
        if opens:  # by a link of its own, so that the one that is printed works, too
            _open_browser(settings.data_dir / SIGN_IN_PAGE, server.sign_in_link())
        how = "your browser opens, signed in; if not, go to" if opens else "to sign in, go to"
        link = server.sign_in_link()
        console.print(f"  {how} (once, within 10 minutes): {link}", soft_wrap=True)
        if command := tunnel(origin, ssh_connection()):
            console.print(
                f"  you are here over ssh: first type, where you sit: {escape(command)}",
                soft_wrap=True,
            )
    else:
        console.print(f"  to sign in, run `{own} owner link`", soft_wrap=True)
    with server.stores.records.snapshot() as snapshot:
        is_empty = not any(stored.record_count for stored in snapshot.stored_streams())
    if is_empty:
        console.print(
            (
                "\n"
                f"There are no records yet in {escape(str(settings.data_dir))}. In "
                f"another terminal: [bold]{own} import FILE[/]\n"
                f"  what can be imported, and how to get an export: {own} sources"
            ),
            soft_wrap=True,
        )
    console.print(f"\nConnect an agent to: [bold]{mcp_url(origin)}[/]")
    for connection in host_connections(origin):
        console.print(f"  [cyan]{connection.host}[/]  {connection.instruction}", soft_wrap=True)
        console.print(f"    {escape(connection.text)}", soft_wrap=True)
        if connection.then:
            console.print(f"    {escape(connection.then)}", style="dim", soft_wrap=True)
    console.print(
        (f"\nStop the server with Ctrl-C.  To see what apps read: `{own} disclosures`.\n"),
        soft_wrap=True,
    )


def _open_browser(page: Path, link: str) -> None:
    """Open the link by a page that its owner alone can read.

    What a browser is started with can be read by every user of the machine.
    """
    page.unlink(missing_ok=True)
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">')
    # some browsers return only when they are closed
    threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
