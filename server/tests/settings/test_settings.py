import shlex
from pathlib import Path

import pytest

from pdpp_mcp_server.settings import (
    InvalidSetting,
    adapter_from_env,
    has_desktop,
    own_command,
    own_program,
)
from personal_server.settings import Settings, from_env


def test_an_empty_environment_gives_a_loopback_server() -> None:
    settings = from_env({})
    assert settings.public_url == "http://127.0.0.1:7662"
    assert settings.is_loopback
    assert (settings.bind_host, settings.bind_port) == ("127.0.0.1", 7662)


def test_another_port_moves_the_default_origin() -> None:
    assert from_env({"PDPP_BIND": "127.0.0.1:9000"}).public_url == "http://127.0.0.1:9000"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PDPP_PUBLIC_URL", "http://me.example"),
        ("PDPP_PUBLIC_URL", "https://me.example/"),
        ("PDPP_PUBLIC_URL", "https://me.example?x=1"),
        ("PDPP_PUBLIC_URL", "ftp://me.example"),
        ("PDPP_PUBLIC_URL", "forwarded"),
        ("PDPP_BIND", "7662"),
        ("PDPP_BIND", "127.0.0.1:99999"),
        ("PDPP_BIND", "me.example:80"),
        ("PDPP_TRUSTED_PROXIES", "10.0.0.0/99"),
        ("PDPP_TRUSTED_HOSTS", "me.example/path"),
        ("PDPP_TIME_ZONE", "Europe/Atlantis"),
        ("PDPP_LANGUAGE", "xx"),
        ("PDPP_LANGUAGE", "../de"),
        ("PDPP_MCP_RESOURCE_LINKS", "sometimes"),
        ("PDPP_DCR", "yes"),
        ("PDPP_IMPORT_FOLDERS", "Downloads"),
        ("PDPP_DATABASE_URL", "mysql://me@db.example/records"),
        ("PDPP_DATABASE_URL", "postgresql://db.example"),
        ("PDPP_DATABASE_SCHEMA", "Mine"),
        ("PDPP_DATABASE_SCHEMA", "pg_mine"),
    ],
)
def test_an_unusable_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        from_env({name: value})
    assert name in str(raised.value)


def test_a_public_origin_is_not_a_loopback_one() -> None:
    settings = from_env({"PDPP_PUBLIC_URL": "https://me.example:443"})
    assert settings.public_url == "https://me.example"
    assert not settings.is_loopback


def test_folders_of_imports_are_named_one_after_the_other() -> None:
    settings = from_env({"PDPP_IMPORT_FOLDERS": "~/Downloads, /srv/exports"})
    assert settings.import_folders == (Path.home() / "Downloads", Path("/srv/exports"))


def test_the_database_is_one_file_in_the_data_directory() -> None:
    assert Settings(data_dir=Path("x")).database_path == Path("x/personal-server.sqlite3")


def test_the_address_of_a_database_is_never_shown() -> None:
    settings = from_env({"PDPP_DATABASE_URL": "postgresql://me:hush@db.example/records"})
    assert settings.database_url == "postgresql://me:hush@db.example/records"
    assert "hush" not in repr(settings)


def test_the_adapter_learns_which_owner_variables_are_present_but_not_their_values() -> None:
    settings = adapter_from_env({"PDPP_OWNER_TOKEN": "secret", "PDPP_CACHE_ROOT": "cache"})
    assert settings.owner_variables == ("PDPP_OWNER_TOKEN",)
    assert settings.cache_root == Path("cache")
    assert "secret" not in repr(settings)


def test_a_port_and_a_folder_given_come_before_the_environment(tmp_path: Path) -> None:
    environ = {"PDPP_BIND": "127.0.0.1:8000", "PDPP_DATA_DIR": "/elsewhere"}
    settings = from_env(environ, port=9000, data_dir=tmp_path)
    assert (settings.bind_host, settings.bind_port) == ("127.0.0.1", 9000)
    assert (settings.data_dir, settings.public_url) == (tmp_path, "http://127.0.0.1:9000")


def test_a_command_is_spelled_as_it_works_from_where_the_person_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = tmp_path / "made here" / "bin"
    scripts.mkdir(parents=True)
    program = scripts / "pdpp"
    program.write_text("")
    program.chmod(0o755)

    def path_of(_: str) -> str:
        return str(scripts)

    monkeypatch.setattr("sysconfig.get_path", path_of)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir("/")
    assert own_command() == shlex.quote(str(program.relative_to("/")))
    monkeypatch.chdir(scripts.parent)
    assert own_command() == "bin/pdpp"
    assert own_command(from_here=False) == shlex.quote(str(program))
    assert own_program("pdpp") == str(program)
    assert own_program("pdpp-mcp-server") == "pdpp-mcp-server"
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "pdpp").symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path / "linked"))
    assert own_command() == "pdpp"


def test_the_program_that_is_one_file_is_called_by_its_own_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = tmp_path / "pdpp-0.1.0"
    whole.write_text("")
    monkeypatch.setenv("PDPP_PROGRAM", str(whole))

    def path_of(_: str) -> str:
        return str(tmp_path / "unpacked")

    monkeypatch.setattr("sysconfig.get_path", path_of)
    assert own_program("pdpp") == str(whole)


@pytest.mark.parametrize(("screen", "has"), [(":0", True), ("", False)])
def test_a_browser_needs_a_screen(monkeypatch: pytest.MonkeyPatch, screen: str, has: bool) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("DISPLAY", screen)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert has_desktop() is has
