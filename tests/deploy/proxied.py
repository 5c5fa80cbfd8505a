"""A real server behind a real proxy, whose configuration is the text of docs/deploy.md."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from personal_server.settings import Settings
from server.tests.app.http_server.served import ServedProcess, until
from tests.ports import free_port
from tests.processes import started, stop

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
NAME = "me.example"


def block_of(language: str) -> str:
    """The configuration that the page shows."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return block


def replaced(text: str, changes: Mapping[str, str]) -> str:
    """A text with other places; every one of them must be there."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@dataclass
class ProxiedServer(ServedProcess):
    """A server that is reached at `https://me.example:PORT` only."""

    public_port: int = field(default_factory=free_port)

    @property
    def public_url(self) -> str:
        return f"https://{NAME}:{self.public_port}"

    @property
    def settings(self) -> Settings:
        return Settings(
            data_dir=self.folder / "data", public_url=self.public_url, bind_port=self.port
        )

    def client(self, **headers: str) -> httpx2.Client:
        """A client that finds the name on this machine."""
        return httpx2.Client(
            base_url=f"https://127.0.0.1:{self.public_port}",
            headers={"Host": f"{NAME}:{self.public_port}", **headers},
            verify=False,
            timeout=240,
            event_hooks={"request": [_name_server]},
        )


@contextmanager
def proxied(folder: Path, program: str) -> Generator[ProxiedServer]:
    """A server behind `nginx` or `caddy`."""
    password = folder / "password"
    password.write_text("correct horse battery staple", "utf-8")
    server = ProxiedServer(folder, {})
    server.environ = {
        "PDPP_PUBLIC_URL": server.public_url,
        "PDPP_OWNER_PASSWORD_FILE": str(password),
    }
    server.furnish()
    server.start()
    password.unlink()  # set by now, and no test may leave one in clear
    begin = {"nginx": begin_nginx, "caddy": begin_caddy}[program]
    with (folder / f"{program}.log").open("w") as log:
        proxy = begin(folder, server, log.fileno())
        try:
            until(lambda: _answers(server) or proxy.poll() is not None)
            assert proxy.poll() is None, (folder / f"{program}.log").read_text()
            yield server
        finally:
            stop(proxy)
            server.stop()


def begin_nginx(folder: Path, server: ProxiedServer, log: int) -> subprocess.Popen[bytes]:
    """nginx with the server block of the page."""
    write_certificate(folder)
    block = replaced(
        block_of("nginx"),
        {
            "listen 443 ssl": f"listen 127.0.0.1:{server.public_port} ssl",
            "/etc/ssl/me.example": str(folder),
            "127.0.0.1:7662": f"127.0.0.1:{server.port}",
        },
    )
    scratch = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "\n".join(f"{name}_temp_path {folder}/nginx-{name};" for name in scratch)
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off;\n{places}\n{block}\n}}\n"
    )
    command = [str(shutil.which("nginx")), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    return started(command, stdout=log, stderr=log)


def begin_caddy(folder: Path, server: ProxiedServer, log: int) -> subprocess.Popen[bytes]:
    """Caddy with the Caddyfile of the page, and a certificate of its own making."""
    options = f"""
        {{
            admin off
            local_certs
            skip_install_trust
            https_port {server.public_port}
            http_port {free_port()}
            default_bind 127.0.0.1
        }}
    """
    block = replaced(block_of("caddyfile"), {"127.0.0.1:7662": f"127.0.0.1:{server.port}"})
    (folder / "Caddyfile").write_text(textwrap.dedent(options) + block)
    command = [str(shutil.which("caddy")), "run", "--config", str(folder / "Caddyfile")]
    homes = {name: str(folder) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    environ = {**os.environ, **homes}  # noqa: TID251 (a child's environment)
    return started(command, stdout=log, stderr=log, env=environ)


def write_certificate(folder: Path) -> None:
    """A certificate for the name, by nobody."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "fullchain.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def _name_server(request: httpx2.Request) -> None:
    request.extensions["sni_hostname"] = NAME


def _answers(server: ProxiedServer) -> bool:
    try:
        with server.client() as client:
            return client.get("/healthz").status_code == 200
    except httpx2.TransportError:
        return False
