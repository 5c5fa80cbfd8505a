"""One HTTP exchange with a server's JSON endpoints, as values.

Rule: redirects are not followed and nothing of an answer is quoted in an error; a server that
cannot be reached is the only failure raised.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import httpx2

from personal_server.rs_client.credentials import ProviderUnavailable

HTTP_SECONDS = 15.0
MAX_BODY_BYTES = 4 * 1024**2

for _noisy in ("httpx2", "httpcore2"):
    logging.getLogger(_noisy).setLevel(logging.WARNING)  # they log whole URLs at INFO


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, JSON object (empty without one) and headers by lower-case name."""

    status: int
    body: Mapping[str, object]
    headers: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether the status is a success."""
        return 200 <= self.status < 300

    @property
    def error(self) -> str | None:
        """The code of an error in either family."""
        found = self.body.get("error")
        if isinstance(found, dict):
            found = cast("dict[str, object]", found).get("code")
        return found if isinstance(found, str) else None

    def text(self, name: str) -> str | None:
        """A member that is a non-empty string."""
        value = self.body.get(name)
        return value if isinstance(value, str) and value else None


@dataclass(frozen=True, slots=True)
class Exchange:
    """Asks over one HTTP client.  Every method raises ProviderUnavailable and nothing else."""

    http: httpx2.Client

    def get(self, url: str, bearer: str | None = None) -> Reply:
        """Read a document."""
        headers = {"Accept": "application/json"}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        return self._send(self.http.build_request("GET", url, headers=headers))

    def post_form(self, url: str, form: Mapping[str, str]) -> Reply:
        """Post a form."""
        return self._send(self.http.build_request("POST", url, data=dict(form)))

    def post_json(self, url: str, body: object, bearer: str | None = None) -> Reply:
        """Post a JSON document."""
        headers = {"Accept": "application/json, text/event-stream"}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        return self._send(self.http.build_request("POST", url, json=body, headers=headers))

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> Reply:
        """Any request; `body` is sent as JSON unless it is `None`."""
        sent = dict(headers or {})
        if body is None:
            return self._send(self.http.build_request(method, url, headers=sent))
        return self._send(self.http.build_request(method, url, headers=sent, json=body))

    def _send(self, request: httpx2.Request) -> Reply:
        try:
            response = self.http.send(request, follow_redirects=False)
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise unavailable("The server could not be reached.") from None
        try:
            value: object = response.json() if len(response.content) <= MAX_BODY_BYTES else None
        except ValueError:
            value = None
        body = cast("dict[str, object]", value) if isinstance(value, dict) else {}
        headers = {name.lower(): text for name, text in response.headers.items()}
        return Reply(response.status_code, body, headers)


def network_exchange() -> Exchange:
    """Over the network; a device's owner is shown who asks, so it says what it is."""
    headers = {"User-Agent": f"pdpp ({platform.system() or 'unknown system'})"}
    client = httpx2.Client(timeout=HTTP_SECONDS, follow_redirects=False, headers=headers)
    return Exchange(client)


def unavailable(message: str) -> ProviderUnavailable:
    """The error of a server that does not answer as it should."""
    return ProviderUnavailable(message, "Check that the server runs and try again.")
