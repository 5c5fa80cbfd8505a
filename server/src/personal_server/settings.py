"""Settings: the only reader of the environment.

Rule: a `Settings` that exists can be started with; every invalid value is refused here, in one
sentence that names the variable.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec

from pdpp_kernel.unprinted import Unprinted
from pdpp_mcp_server.settings import Environment, InvalidSetting

FORWARDED = "forwarded"
MOST_WORKERS = 16
DEFAULT_ORIGIN = "http://127.0.0.1:7662"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_NETLOC = re.compile(r"[A-Za-z0-9.-]+(:\d{1,5})?\Z|\[[0-9A-Fa-f:]+\](:\d{1,5})?\Z")
_CATALOGUES = Path(__file__).parent / "console" / "catalogues"

Network = IPv4Network | IPv6Network
T = TypeVar("T")


class LimitSettings(msgspec.Struct, frozen=True):
    """Rates and quotas per grant.  Units: cost units, bytes, records; 0 switches a limit off.

    Source: docs/contract/resource-server.md 16.
    """

    requests_per_second: int = 20
    burst: int = 600
    in_flight: int = 8
    records_per_day: int = 200_000
    bytes_per_day: int = 2 * 1024**3
    failed_tokens_per_minute: int = 30


class Settings(Unprinted, frozen=True):
    """How a server runs.

    Shapes: `public_url` is an origin without trailing slash, or `"forwarded"`; `trusted_hosts`
    are `host[:port]` of forwarded origins.
    Source: docs/contract/authorization-server.md 1; docs/contract/resource-server.md 19.
    """

    public_url: str = DEFAULT_ORIGIN
    bind_host: str = "127.0.0.1"
    bind_port: int = 7662
    data_dir: Path = Path("~/.pdpp/data")
    database_url: str | None = None
    database_schema: str = "pdpp"
    database_listen_url: str | None = None
    server_name: str = "Personal server"
    time_zone: str | None = None
    language: str | None = None
    trusted_proxies: tuple[Network, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    dynamic_registration: bool = True
    client_metadata_documents: bool = True
    extra_redirect_schemes: tuple[str, ...] = ("cursor", "vscode", "vscode-insiders", "windsurf")
    owner_password_file: Path | None = None
    change_history_days: int = 180
    disclosure_log_days: int = 400
    asked_detail_days: int = 30
    audit_log_days: int = 1_095
    max_blob_bytes: int = 50 * 1024**2
    upload_bytes: int = 20 * 1024**3
    import_folders: tuple[Path, ...] = ()
    mcp_resource_links: str = "auto"
    mcp_max_blob_bytes: int = 5 * 1024**2
    workers: int = 0
    max_connections: int = 1_000
    stalled_seconds: int = 30
    log_level: str = "info"
    log_file: Path | None = None
    log_file_bytes: int = 10 * 1024**2
    log_files_kept: int = 5
    metrics_bind: tuple[str, int] | None = None
    metrics_token_file: Path | None = None
    backup_dir: Path | None = None
    backup_every_hours: int = 24
    backup_keep: int = 7
    backup_recipient: str | None = None
    pause_on_alarm: str = "never"
    callback_hosts: tuple[str, ...] = ()
    notice_command: Path | None = None
    open_browser: bool = True
    dev_loopback_callbacks: bool = False
    limits: LimitSettings = LimitSettings()

    @property
    def is_loopback(self) -> bool:
        """Whether both the public origin and the listening address are loopback ones."""
        if self.public_url == FORWARDED:
            return False
        host = urlsplit(self.public_url).hostname or ""
        return host in _LOOPBACK_NAMES and self.bind_host in _LOOPBACK_NAMES

    @property
    def database_path(self) -> Path:
        """The one SQLite file."""
        return self.data_dir / "personal-server.sqlite3"


def from_env(
    environ: Mapping[str, str] = os.environ,  # noqa: TID251 (the one reader)
    *,
    port: int | None = None,
    data_dir: Path | None = None,
) -> Settings:
    """Settings from the environment; what is given here wins over it.  Raises: InvalidSetting."""
    read = Environment(environ)
    bind_host, bind_port = read.parsed("PDPP_BIND", _parse_bind, ("127.0.0.1", 7662))
    bind_port = bind_port if port is None else port
    default_url = DEFAULT_ORIGIN if bind_port == 7662 else f"http://127.0.0.1:{bind_port}"
    settings = Settings(
        public_url=read.parsed("PDPP_PUBLIC_URL", _parse_public_url, default_url),
        bind_host=bind_host,
        bind_port=bind_port,
        data_dir=(data_dir or Path(read.text("PDPP_DATA_DIR") or "~/.pdpp/data")).expanduser(),
        database_url=read.parsed("PDPP_DATABASE_URL", _parse_database_url, None),
        database_schema=read.parsed("PDPP_DATABASE_SCHEMA", _parse_schema, "pdpp"),
        database_listen_url=read.parsed("PDPP_DATABASE_LISTEN_URL", _parse_database_url, None),
        server_name=read.text("PDPP_SERVER_NAME") or "Personal server",
        time_zone=read.parsed("PDPP_TIME_ZONE", _parse_zone, None),
        language=read.parsed("PDPP_LANGUAGE", _parse_language, None),
        trusted_proxies=tuple(read.each("PDPP_TRUSTED_PROXIES", _parse_network)),
        trusted_hosts=tuple(read.each("PDPP_TRUSTED_HOSTS", _parse_netloc)),
        allowed_origins=tuple(read.each("PDPP_ALLOWED_ORIGINS", _parse_origin)),
        dynamic_registration=read.switch("PDPP_DCR"),
        client_metadata_documents=read.switch("PDPP_CIMD"),
        extra_redirect_schemes=tuple(
            read.each("PDPP_EXTRA_REDIRECT_SCHEMES", str.lower, Settings().extra_redirect_schemes)
        ),
        owner_password_file=read.path("PDPP_OWNER_PASSWORD_FILE"),
        change_history_days=read.integer("PDPP_CHANGE_HISTORY_DAYS", 180, 0, 36_500),
        disclosure_log_days=read.integer("PDPP_DISCLOSURE_LOG_DAYS", 400, 1, 36_500),
        asked_detail_days=read.integer("PDPP_ASKED_DETAIL_DAYS", 30, 0, 36_500),
        audit_log_days=read.integer("PDPP_AUDIT_LOG_DAYS", 1_095, 1, 36_500),
        max_blob_bytes=read.integer("PDPP_MAX_BLOB_BYTES", 50 * 1024**2, 1, 2**40),
        upload_bytes=read.integer("PDPP_UPLOAD_BYTES", 20 * 1024**3, 0, 2**44),
        import_folders=tuple(read.each("PDPP_IMPORT_FOLDERS", _parse_folder)),
        mcp_resource_links=read.choice("PDPP_MCP_RESOURCE_LINKS", ("auto", "always", "never")),
        mcp_max_blob_bytes=read.integer("PDPP_MCP_MAX_BLOB_BYTES", 5 * 1024**2, 1, 2**30),
        workers=read.integer("PDPP_WORKERS", 0, 0, MOST_WORKERS),
        max_connections=read.integer("PDPP_MAX_CONNECTIONS", 1_000, 16, 10**6),
        stalled_seconds=read.integer("PDPP_STALLED_SECONDS", 30, 1, 3_600),
        log_level=read.choice("PDPP_LOG_LEVEL", ("info", "debug", "warning", "error")),
        log_file=read.path("PDPP_LOG_FILE"),
        log_file_bytes=read.integer("PDPP_LOG_FILE_BYTES", 10 * 1024**2, 64 * 1024, 2**40),
        log_files_kept=read.integer("PDPP_LOG_FILES_KEPT", 5, 1, 1_000),
        metrics_bind=read.parsed("PDPP_METRICS_BIND", _parse_bind, None),
        metrics_token_file=read.path("PDPP_METRICS_TOKEN_FILE"),
        backup_dir=read.path("PDPP_BACKUP_DIR"),
        backup_every_hours=read.integer("PDPP_BACKUP_EVERY_HOURS", 24, 1, 8_760),
        backup_keep=read.integer("PDPP_BACKUP_KEEP", 7, 1, 10_000),
        backup_recipient=read.text("PDPP_BACKUP_RECIPIENT") or None,
        pause_on_alarm=read.choice("PDPP_PAUSE_ON_ALARM", ("never", "canary", "always")),
        callback_hosts=tuple(read.each("PDPP_CALLBACK_HOSTS", _parse_netloc)),
        notice_command=read.path("PDPP_NOTICE_COMMAND"),
        open_browser=read.choice("PDPP_OPEN_BROWSER", ("1", "0")) == "1",
        dev_loopback_callbacks=read.choice("PDPP_DEV_LOOPBACK_CALLBACKS", ("0", "1")) == "1",
        limits=_limits(read),
    )
    _require_guarded_figures(settings)
    if settings.public_url == FORWARDED and not (
        settings.trusted_proxies and settings.trusted_hosts
    ):
        raise InvalidSetting(
            "PDPP_PUBLIC_URL=forwarded needs PDPP_TRUSTED_PROXIES and PDPP_TRUSTED_HOSTS."
        )
    return settings


def _require_guarded_figures(settings: Settings) -> None:
    """Figures are open to whoever reaches their listener on this machine, else to a token."""
    bound = settings.metrics_bind
    if bound is None:
        return
    if bound[0] not in _LOOPBACK_NAMES and settings.metrics_token_file is None:
        raise InvalidSetting(
            "PDPP_METRICS_BIND names an address that other machines reach, so "
            "PDPP_METRICS_TOKEN_FILE must be set."
        )
    if bound[1] and bound[1] == settings.bind_port:
        raise InvalidSetting("PDPP_METRICS_BIND needs a port of its own.")


def command_environment(
    settings: Settings,
    environ: Mapping[str, str] = os.environ,  # noqa: TID251
) -> dict[str, str]:
    """What a command of ours inherits that is to find the very store of these settings."""
    variables = {
        "PDPP_DATA_DIR": str(settings.data_dir),
        "PDPP_DATABASE_URL": settings.database_url,
        "PDPP_DATABASE_SCHEMA": settings.database_schema,
        "PDPP_TIME_ZONE": settings.time_zone,
        "PDPP_LANGUAGE": settings.language,
    }
    return {**environ, **{name: value for name, value in variables.items() if value is not None}}


def become(environment: Mapping[str, str]) -> None:
    """Have this process, which came from one without settings, go by these."""
    os.environ.clear()  # noqa: TID251
    os.environ.update(environment)  # noqa: TID251
    time.tzset()


def ssh_connection(environ: Mapping[str, str] = os.environ) -> list[str]:  # noqa: TID251
    """Address and port of whoever sits here over ssh, then those of this machine; see ssh(1)."""
    return environ.get("SSH_CONNECTION", "").split()


def set_variables(
    before: Mapping[str, str],
    environ: Mapping[str, str] = os.environ,  # noqa: TID251
) -> dict[str, str]:
    """The variables of the server that are set: what another process needs to be the same.

    Those set `before` count where `environ` does not name them; an empty value there unsets one.
    Raises: InvalidSetting.
    """
    asked = _Asked({**before, **environ})
    from_env(asked)
    names = sorted(asked.names | before.keys())
    return {name: value for name in names if (value := asked.get(name, "").strip())}


class _Asked(dict[str, str]):
    """An environment that notes what it was asked for."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ)
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def _limits(read: Environment) -> LimitSettings:
    default = LimitSettings()
    return LimitSettings(
        requests_per_second=read.integer(
            "PDPP_RATE_PER_SECOND", default.requests_per_second, 0, 10**6
        ),
        burst=read.integer("PDPP_RATE_BURST", default.burst, 0, 10**6),
        in_flight=read.integer("PDPP_MAX_IN_FLIGHT", default.in_flight, 0, 10**4),
        records_per_day=read.integer(
            "PDPP_QUOTA_RECORDS_PER_DAY", default.records_per_day, 0, 10**12
        ),
        bytes_per_day=read.integer("PDPP_QUOTA_BYTES_PER_DAY", default.bytes_per_day, 0, 10**15),
        failed_tokens_per_minute=read.integer(
            "PDPP_FAILED_TOKENS_PER_MINUTE", default.failed_tokens_per_minute, 0, 10**6
        ),
    )


def _parse_bind(text: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or not 0 <= int(port) <= 65_535:
        raise ValueError("an address and a port are needed, such as 127.0.0.1:7662.")
    host = host.strip("[]")
    if host != "localhost":
        ip_address(host)
    return ("127.0.0.1" if host == "localhost" else host, int(port))


def _parse_database_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise ValueError("an address is needed, such as postgresql://me@db.example/records.")
    return text


def _parse_schema(text: str) -> str:
    if not _SCHEMA.fullmatch(text) or text.startswith("pg_"):
        raise ValueError("a name of small letters, digits and _ is needed.")
    return text


def _parse_zone(text: str) -> str:
    try:
        return ZoneInfo(text).key
    except (ValueError, KeyError, OSError):
        raise ValueError("the name of a time zone is needed, such as Europe/Rome.") from None


def _parse_language(text: str) -> str:
    known = ["en", *sorted(path.stem for path in _CATALOGUES.glob("*.po"))]
    if text not in known:
        raise ValueError(f"the value must be one of {', '.join(known)}.")
    return text


def _parse_folder(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise ValueError("folders need full paths, such as /home/ada/Downloads.")
    return path


def _parse_public_url(text: str) -> str:
    return text if text == FORWARDED else _parse_origin(text)


def _parse_origin(text: str) -> str:
    parts = urlsplit(text)
    loopback = (parts.hostname or "") in _LOOPBACK_NAMES
    if parts.scheme not in ("https", "http") or not _NETLOC.match(parts.netloc):
        raise ValueError("an origin is needed, such as https://me.example.")
    if parts.path or parts.query or parts.fragment:
        raise ValueError("the origin must not have a path, query or trailing slash.")
    if parts.scheme == "http" and not loopback:
        raise ValueError("http is only for loopback hosts; use https.")
    default_port = ":443" if parts.scheme == "https" else ":80"
    return f"{parts.scheme}://{parts.netloc.lower().removesuffix(default_port)}"


def _parse_netloc(text: str) -> str:
    if not _NETLOC.match(text):
        raise ValueError("hosts are needed, such as me.example or me.example:8443.")
    return text.lower()


def _parse_network(text: str) -> Network:
    return ip_network(text, strict=False)
