"""TLS begun on a connection that a mail server answered without it.

Rule: nothing is sent before it but the request for it, and nothing that was said before it is
believed after it; a server that does not begin it gets no password.
Source: docs/contract/feeds.md 10; RFC 3501, 6.2.1; RFC 8314.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator

from personal_server.feeds.fetched_batches import FetchTrouble

NOT_BEGUN = "encryption_refused"
LONGEST_LINE_BYTES, MOST_LINES = 8_192, 100
ANSWER_SECONDS = 30.0
_ASKED = b"P0 STARTTLS\r\n"


def with_tls(plain: socket.socket, host: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """The connection with TLS, and a certificate that is valid for the host.

    A server that greets as one who knows us already (`PREAUTH`) takes no request for TLS.
    Raises: FetchTrouble, OSError.
    """
    answers = _lines(plain)
    if not next(answers).upper().startswith(b"* OK"):
        raise FetchTrouble(NOT_BEGUN)
    plain.sendall(_ASKED)
    for line in answers:
        if line.upper().startswith(b"P0 OK"):
            # What it said after that line is no TLS, and fails as such.
            return context.wrap_socket(plain, server_hostname=host)
        if not line.startswith(b"* "):
            break
    raise FetchTrouble(NOT_BEGUN)


def _lines(plain: socket.socket) -> Iterator[bytes]:
    """What is said line by line, and no byte more.  Raises: FetchTrouble, OSError."""
    end = time.monotonic() + ANSWER_SECONDS
    for _ in range(MOST_LINES):
        line = b""
        while not line.endswith(b"\n"):
            byte = plain.recv(1)
            if not byte or time.monotonic() > end:
                raise ConnectionError
            line += byte
            if len(line) > LONGEST_LINE_BYTES:
                raise FetchTrouble("mailbox_misbehaves")
        yield line
    raise FetchTrouble("mailbox_misbehaves")
