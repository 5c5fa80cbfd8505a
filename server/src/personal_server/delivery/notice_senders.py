"""How a notice leaves: by a program of the desktop, a signed call of a URL, web push to a browser.

Rule: a program gets its texts as arguments, no shell reads them, and it sees none of the server's
variables; a URL is called by `Callbacks`, so with all that guards events of apps.
Source: docs/contract/authorization-server.md 13.8.
"""

from __future__ import annotations

import html
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import anyio.to_thread
import httpx2
import msgspec
import orjson
from cryptography.hazmat.primitives.asymmetric import ec

from pdpp_kernel.values import NANOSECONDS, render_instant
from personal_server.consent.credentials import RandomBytes
from personal_server.delivery.callbacks import Callbacks, UnsafeAddress
from personal_server.delivery.deliveries import DeliveryOutcome
from personal_server.delivery.notice_turns import TEST, NoticeMessage
from personal_server.delivery.signatures import SecretBox, signed_headers
from personal_server.delivery.web_push import (
    KEY_BYTES,
    SALT_BYTES,
    authorization,
    encrypt,
    new_key,
    padded,
    unpacked_keys,
)
from personal_server.storage.notice_rows import NoticeChannelRow

PROGRAM = "notify-send"
PROGRAM_SECONDS = 10.0
PUSH_TTL_SECONDS = 86_400
SOURCE = "/owner/notices"
NOTICE_EVENT, TEST_EVENT = "pdpp.owner.notice", "pdpp.owner.test"
_GONE = frozenset({404, 410})
_CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"


def desktop_program(named: Path | None) -> str | None:
    """The program that shows notices: the one that a setting names, else `notify-send`."""
    return shutil.which(str(named) if named else PROGRAM)


class DesktopSender(msgspec.Struct, frozen=True):
    """Runs the program with a title and a text.

    Shapes: `named` is the program of the settings; `environment` what it sees; `origin` is this
        server's, below which the page lies that `notify-send` shows under the text.
    """

    named: Path | None
    environment: Mapping[str, str]
    origin: str

    async def send(self, channel: NoticeChannelRow, message: NoticeMessage) -> DeliveryOutcome:
        """Start the program, and wait until it ends."""
        del channel
        program = desktop_program(self.named)
        if program is None:
            return DeliveryOutcome.UNREACHABLE
        arguments = [no_option(message.title), no_option(message.text)]
        if self.named is None:  # a text of the desktop may have markup, a title has none
            text = f"{html.escape(message.text, False)}\n{self.origin}{message.page}"
            arguments = ["--app-name=pdpp", "--", message.title, text]
        try:
            with anyio.fail_after(PROGRAM_SECONDS):
                done = await anyio.run_process(
                    [program, *arguments], check=False, env=self.environment
                )
        except TimeoutError:
            return DeliveryOutcome.TIMED_OUT
        except OSError:
            return DeliveryOutcome.UNREACHABLE
        return DeliveryOutcome.REFUSED if done.returncode else DeliveryOutcome.DELIVERED


def no_option(text: str) -> str:
    """A text that a program takes for no option of its own: an account may be named like one."""
    return f" {text}" if text.startswith("-") else text


class WebhookSender(msgspec.Struct, frozen=True):
    """Calls the URL with an event, signed as events of apps are.  `origin` is this server's."""

    callbacks: Callbacks
    secrets: SecretBox
    origin: str

    async def send(self, channel: NoticeChannelRow, message: NoticeMessage) -> DeliveryOutcome:
        """One call."""
        body = self._body(message)
        secret = self.secrets.open(channel.secret or b"", channel.channel_id)
        at_s = message.at_ns // NANOSECONDS
        headers = signed_headers(message.message_id, at_s, body, [secret])
        headers["Content-Type"] = _CONTENT_TYPE
        return await called(self.callbacks, channel.address, headers, body)

    def _body(self, message: NoticeMessage) -> bytes:
        data = {
            "kind": message.kind,
            "count": message.count,
            "title": message.title,
            "text": message.text,
            "page": f"{self.origin}{message.page}",
        }
        return orjson.dumps(
            {
                "specversion": "1.0",
                "pdppversion": "1",
                "id": message.message_id,
                "type": TEST_EVENT if message.kind == TEST else NOTICE_EVENT,
                "source": SOURCE,
                "time": render_instant(message.at_ns),
                "data": data,
            }
        )


class PushSender(msgspec.Struct, frozen=True):
    """Sends to the push service of a browser what only that browser can read.

    Shapes: `push_key` is the key that browsers know this server by; `contact` an address of the
        server's, for whoever runs the push service.
    """

    callbacks: Callbacks
    secrets: SecretBox
    push_key: Callable[[], ec.EllipticCurvePrivateKey | None]
    contact: str
    random_bytes: RandomBytes

    async def send(self, channel: NoticeChannelRow, message: NoticeMessage) -> DeliveryOutcome:
        """One call.  A newer notice of a kind takes the place of one that still waits there."""
        key = await anyio.to_thread.run_sync(self.push_key)
        if key is None:
            return DeliveryOutcome.NOT_MADE
        text = {name: getattr(message, name) for name in ("kind", "title", "text", "page")}
        browser = unpacked_keys(self.secrets.open(channel.secret or b"", channel.channel_id))
        once = new_key(self.random_bytes(KEY_BYTES))
        salt = self.random_bytes(SALT_BYTES)
        body = encrypt(padded(orjson.dumps(text)), browser, once, salt)
        now_s = message.at_ns // NANOSECONDS
        headers = {
            "Authorization": authorization(channel.address, self.contact, key, now_s),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(PUSH_TTL_SECONDS),
            "Topic": message.kind,
            "Urgency": "normal",
        }
        return await called(self.callbacks, channel.address, headers, body)


async def called(
    callbacks: Callbacks, url: str, headers: Mapping[str, str], body: bytes
) -> DeliveryOutcome:
    """What came of a guarded call."""
    try:
        async with callbacks.calling() as transport:
            answer = await callbacks.post(transport, url, headers, body, reads=False)
    except UnsafeAddress:
        return DeliveryOutcome.UNSAFE
    except TimeoutError:
        return DeliveryOutcome.TIMED_OUT
    except (OSError, UnicodeError, httpx2.HTTPError, httpx2.InvalidURL):
        return DeliveryOutcome.UNREACHABLE
    if 200 <= answer.status < 300:
        return DeliveryOutcome.DELIVERED
    return DeliveryOutcome.GONE if answer.status in _GONE else DeliveryOutcome.REFUSED
