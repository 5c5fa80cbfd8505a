"""Clients of tests trust whom a test names, and none of the authorities of the system.

Rule: no test speaks with a stranger's server over TLS in its own process.  To load the hundred and
forty authorities that a system trusts takes 20 ms of processor time, for each client that is made;
`SSL_CERT_FILE`, which a test may set, is heeded as ever.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable

NAMED = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def named_only(load: Callable[[ssl.SSLContext, ssl.Purpose], None]) -> Callable[..., None]:
    """The same method, which does nothing where no authorities are named."""

    def loading(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
        if any(name in os.environ for name in NAMED):  # noqa: TID251 (a setting of OpenSSL)
            load(context, purpose)

    return loading


ssl.SSLContext.load_default_certs = named_only(ssl.SSLContext.load_default_certs)
