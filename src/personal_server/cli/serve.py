"""`pdpp serve`: the server in the foreground, and what its owner needs to know at the start."""

from __future__ import annotations

import socket
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from rich.console import Console
from rich.markup import escape
from starlette.types import ASGIApp

from personal_server.app.connections import (
    Connections,
    connections_within,
    raise_descriptor_limit,
)
from personal_server.app.http_server import HttpServer, SecondListener, stop_before_serving
from personal_server.app.server import Server, open_server
from personal_server.app.stores import command_origin
from personal_server.cli import garbage
from personal_server.cli.exits import CommandError, settings_or_exit
from personal_server.confinement import forbid_core_dumps
from personal_server.domain.hosts import host_connections, mcp_url
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.passkeys import has_passkey
from personal_server.settings import Settings
from personal_server.web.log_file import LogFile
from personal_server.web.logs import configure_logging

SHORTEST_TOKEN = 32


def serve(
    *,
    port: Annotated[int | None, Parameter(validator=validators.Number(gte=0, lte=65_535))] = None,
    data_dir: Path | None = None,
) -> None:
    """Serve your records at PDPP_BIND until a signal (Ctrl-C, SIGTERM, SIGHUP) stops it.

    Parameters
    ----------
    port
        Listen here instead of at the port of PDPP_BIND.
    data_dir
        Keep everything here instead of in PDPP_DATA_DIR; other commands need that variable then.
    """
    stop_before_serving()
    forbid_core_dumps()
    settings = settings_or_exit(port, data_dir)
    log_file = open_log_file(settings)
    configure_logging(settings.log_level, log_file)
    with ExitStack() as stack:
        listener = stack.enter_context(listening(settings.bind_host, settings.bind_port))
        second = stack.enter_context(figures_listener(settings))
        server = stack.enter_context(open_server(settings))
        require_password(server.sign_in, settings)
        listener.listen()  # from here on callers wait instead of being refused
        greet(server, settings, Console(stderr=True, highlight=False))
        most = connections_within(settings.max_connections, raise_descriptor_limit())
        connections = Connections(most, settings.stalled_seconds)
        server.health.register(connections.faults)
        if log_file is not None:
            server.health.register(log_file.faults)
        figures = second and SecondListener(figures_app(settings, server, connections), second)
        garbage.leave_what_is_there()
        HttpServer(server.app, connections, figures).serve_on(listener)


def open_log_file(settings: Settings) -> LogFile | None:
    """The file of PDPP_LOG_FILE.  Raises: CommandError (`config`)."""
    if settings.log_file is None:
        return None
    try:
        return LogFile(settings.log_file, settings.log_file_bytes, settings.log_files_kept)
    except OSError:
        raise CommandError(
            "config",
            "The file that PDPP_LOG_FILE names cannot be written.",
            "Name a file of yours in a folder that is there.",
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
            "This server would be reachable from outside, and its owner cannot sign in there.",
            "Set a password: pdpp owner password",
        )


def figures_listener(settings: Settings) -> AbstractContextManager[socket.socket | None]:
    """Where the figures are asked for, if anywhere.  Raises: CommandError (`unavailable`)."""
    if settings.metrics_bind is None:
        return nullcontext()
    return listening(*settings.metrics_bind, "PDPP_METRICS_BIND")


def figures_app(settings: Settings, server: Server, connections: Connections) -> ASGIApp:
    """What answers there.  Raises: CommandError (`config`)."""
    # the library of the format is loaded by those alone who asked for it
    from personal_server.app.figures import FiguresApp, ServerFigures  # noqa: PLC0415

    token = None
    if settings.metrics_token_file is not None:
        token = _text_of(settings.metrics_token_file, "PDPP_METRICS_TOKEN_FILE")
        if len(token) < SHORTEST_TOKEN:
            raise CommandError(
                "config",
                f"The token in the file that PDPP_METRICS_TOKEN_FILE names is shorter than"
                f" {SHORTEST_TOKEN} characters.",
                "Make one: openssl rand -hex 32 > FILE",
            )
    return FiguresApp(ServerFigures(server, connections), token)


def _text_of(path: Path, variable: str) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise CommandError(
            "config",
            f"The file that {variable} names cannot be read.",
            "Name a file of yours with nothing else in it.",
        ) from None


@contextmanager
def listening(
    host: str, port: int, variable: str = "PDPP_BIND"
) -> Generator[socket.socket, None, None]:
    """The listening socket; taken before anything else, so that a busy port costs nothing.

    Raises: CommandError (`unavailable`).
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    address = f"{host}:{port}"
    # Named as TCP, or asyncio leaves Nagle's delay on and small answers take 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            raise CommandError(
                "unavailable",
                f"Something already listens on {address}, or the address is not this machine's.",
                f"Stop it, or choose another with {variable}=127.0.0.1:PORT.",
            ) from None
        yield listener


def greet(server: Server, settings: Settings, console: Console) -> None:
    """Say where the server is, how the owner signs in, and how each host connects."""
    origin = server.origin
    console.print(f"\n[bold]{escape(settings.server_name)}[/] at [link={origin}]{origin}[/link]")
    if server.stores.database.is_read_only:
        console.print("  [bold]read-only[/]: nothing can be written, so nobody can sign in anew")
    elif sys.stderr.isatty() and settings.is_loopback:
        console.print(
            f"  sign in (once, within 10 minutes): {server.sign_in_link()}", soft_wrap=True
        )
    else:
        console.print("  sign in: run `pdpp owner link`")
    console.print(f"\nConnect an agent: [bold]{mcp_url(origin)}[/]")
    for connection in host_connections(origin):
        console.print(f"  [cyan]{connection.host}[/]  {connection.instruction}")
        console.print(f"    {escape(connection.text)}", soft_wrap=True)
        if connection.then:
            console.print(f"    {escape(connection.then)}", style="dim", soft_wrap=True)
    console.print("\nStop with Ctrl-C.  What was read: `pdpp disclosures`.\n")
