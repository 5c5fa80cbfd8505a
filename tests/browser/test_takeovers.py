"""Two ways by which others took an owner's server, tried again in a real browser."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, urlencode

import httpx2
import pytest
from selenium.webdriver.support.wait import WebDriverWait

from personal_server.cli.serve import has_address
from personal_server.storage.authorization_rows import RequestRow
from server.tests.cli.test_serve import command, environment_of, greeting
from tests.browser.chromium import chromium
from tests.browser.site import SECONDS, Owner, Site
from tests.processes import started, stopped

pytestmark = pytest.mark.long

OWNERS = "client_id=pdpp-owner-cli&scope=pdpp%3Aowner"
# By script, readable or not, and with the origin left out as far as a page can; then as a form.
ASK_BY_SCRIPT = f"""
const [address, done] = arguments;
const ways = [{{}}, {{mode: "no-cors"}}, {{mode: "no-cors", referrerPolicy: "no-referrer"}},
              {{mode: "no-cors", credentials: "include", keepalive: true}}];
const asked = ways.map(async way => {{
  try {{
    const body = new URLSearchParams("{OWNERS}");
    return await (await fetch(address, {{method: "POST", body, ...way}})).text();
  }} catch (error) {{ return ""; }}
}});
Promise.all(asked).then(done);
"""
ASK_BY_FORM = """
const [address, asked, policy] = arguments;
const form = document.createElement("form");
const meta = document.createElement("meta");
meta.name = "referrer"; meta.content = policy; document.head.append(meta);
form.method = "post"; form.action = address;
for (const [name, value] of new URLSearchParams(asked)) {
  const field = document.createElement("input");
  field.name = name; field.value = value; form.append(field);
}
document.body.append(form); form.submit();
"""

OPEN = "window.opened = window.open(arguments[0]);"
SHOWN = "return document.body.innerText"


class Page(BaseHTTPRequestHandler):
    """A website with an empty page."""

    def do_GET(self) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><p>elsewhere")

    def log_message(self, format: str, *args: object) -> None:
        """Keeps quiet."""


@contextmanager
def website() -> Generator[int]:
    """The port of a website on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_website_starts_the_sign_in_of_an_owner(running: Site, host: str) -> None:
    """Of the same site by another port, and of another site."""
    address = f"{running.origin}/oauth/device_authorization"
    with website() as port, chromium() as driver:
        driver.set_script_timeout(SECONDS)
        elsewhere = f"http://{host}:{port}/"
        driver.get(elsewhere)
        assert driver.execute_async_script(ASK_BY_SCRIPT, address) == [""] * 4
        for policy in ("unsafe-url", "no-referrer"):
            driver.get(elsewhere)
            driver.execute_script(ASK_BY_FORM, address, OWNERS, policy)
            WebDriverWait(driver, SECONDS).until(lambda page: page.current_url == address)
            shown = json.loads(str(driver.execute_script(SHOWN)))
            assert shown["error"] == "unauthorized_client"
    with running.server.stores.authorization.read() as reader:
        assert not reader.count(RequestRow)
    assert httpx2.post(address, data=dict(parse_qsl(OWNERS))).status_code == HTTPStatus.OK


def test_a_website_keeps_hold_of_a_window_only_until_it_has_its_answer(running: Site) -> None:
    """Of a page of the owner it loses it; of its own request not, through sign-in and back."""
    with website() as port, chromium() as driver:
        owner, soon = Owner(driver, running), WebDriverWait(driver, SECONDS)
        owner.sign_in()
        signed_in = driver.current_url
        app = f"http://127.0.0.1:{port}/"
        driver.switch_to.new_window("tab")
        driver.get(app)
        first = driver.current_window_handle
        driver.execute_script(OPEN, signed_in)
        soon.until(lambda _: driver.execute_script("return opened.closed"))
        before = set(driver.window_handles)
        driver.execute_script(OPEN, request_of(running.origin, app))
        soon.until(lambda _: set(driver.window_handles) - before)
        driver.switch_to.window((set(driver.window_handles) - before).pop())
        soon.until(lambda _: "/owner/login" in driver.current_url)
        owner.sign_in()
        assert "/consent/" in driver.current_url
        owner.decide("deny")
        soon.until(lambda _: driver.current_url.startswith(app))
        assert driver.execute_script("return window.opener !== null")
        driver.switch_to.window(first)
        assert not driver.execute_script("return opened.closed")


def request_of(origin: str, app: str) -> str:
    """Where an app begins a request of its own."""
    wanted = {"client_name": "Window", "redirect_uris": [app], "token_endpoint_auth_method": "none"}
    client_id = httpx2.post(f"{origin}/oauth/register", json=wanted).json()["client_id"]
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": app,
        "code_challenge": "c" * 43,
        "code_challenge_method": "S256",
        "resource": f"{origin}/mcp",
        "scope": "pdpp:read",
        "state": "s",
    }
    return f"{origin}/oauth/authorize?{urlencode(asked)}"


@pytest.mark.skipif(not has_address("::1"), reason="this machine has no IPv6")
def test_nobody_else_is_localhost_in_the_browser_of_an_owner(tmp_path: Path) -> None:
    """Chromium tries [::1] first: whoever listens there would get the owner's passkey."""
    machine = environment_of(tmp_path)
    port = int(machine["PDPP_BIND"].rpartition(":")[2])
    with relay(port):
        refused = subprocess.run(command("serve"), env=machine, capture_output=True, check=False)
        assert refused.returncode == 69
    process = started(command("serve"), env=machine, stderr=subprocess.PIPE, text=True)
    try:
        greeting(process)
        with pytest.raises(OSError, match="in use"), relay(port):
            pass
        with chromium() as driver:
            for host in ("[::1]", "localhost", "127.0.0.1"):
                driver.get(f"http://{host}:{port}/healthz")
                assert json.loads(str(driver.execute_script(SHOWN))) == {"status": "ok"}
    finally:
        stopped(process)


@contextmanager
def relay(port: int) -> Generator[None]:
    """Another program that is `localhost` to a browser."""
    with socket.socket(socket.AF_INET6) as listening:
        listening.bind(("::1", port))
        listening.listen()
        yield
