from collections.abc import Callable
from pathlib import Path

import pytest

from personal_server.errors import StorageUnavailable
from personal_server.settings import load_configuration


def counting() -> Callable[[int], bytes]:
    state = iter(range(256))
    return lambda size: bytes([next(state)] * size)


def test_the_first_start_names_the_owner_once_and_for_all(tmp_path: Path) -> None:
    draw = counting()
    first = load_configuration(tmp_path / "data", draw)
    second = load_configuration(tmp_path / "data", draw)
    assert first == second
    assert first.subject_id.startswith("own_")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "config.toml").stat().st_mode & 0o777 == 0o600
    assert [p.name for p in (tmp_path / "data").iterdir()] == ["config.toml"]


def test_clients_set_up_by_hand_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        'subject_id = "own_x"\n[[clients]]\nclient_id = "notes"\n', encoding="utf-8"
    )
    assert load_configuration(tmp_path, counting()).clients == ({"client_id": "notes"},)


@pytest.mark.parametrize("content", ["subject_id =", 'subject_id = "x"', "", "\xff"])
def test_a_broken_file_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(StorageUnavailable):
        load_configuration(tmp_path, counting())
    assert path.read_bytes() == content.encode("latin-1")


def test_a_directory_that_cannot_be_made_is_named_without_its_error_text(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable) as raised:
        load_configuration(tmp_path / "file" / "data", counting())
    assert "PDPP_DATA_DIR" in raised.value.message
