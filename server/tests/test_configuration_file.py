from pathlib import Path

import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.configuration_file import (
    new_subject_id,
    read_configuration,
    write_configuration,
)


def test_what_is_written_once_stays(tmp_path: Path) -> None:
    subject_id = new_subject_id(bytes)
    assert read_configuration(tmp_path / "data") is None
    write_configuration(tmp_path / "data", subject_id)
    write_configuration(tmp_path / "data", "own_another")
    first = read_configuration(tmp_path / "data")
    assert first is not None
    assert first.subject_id == subject_id
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "config.toml").stat().st_mode & 0o777 == 0o600
    assert [p.name for p in (tmp_path / "data").iterdir()] == ["config.toml"]


def test_clients_set_up_by_hand_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        'subject_id = "own_x"\n[[clients]]\nclient_id = "notes"\n', encoding="utf-8"
    )
    found = read_configuration(tmp_path)
    assert found is not None
    assert found.clients == [{"client_id": "notes"}]


@pytest.mark.parametrize("content", ["subject_id =", 'subject_id = "x"', "", "\xff"])
def test_a_broken_file_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(StorageUnavailable):
        read_configuration(tmp_path)
    assert path.read_bytes() == content.encode("latin-1")


def test_a_directory_that_cannot_be_made_is_named_without_its_error_text(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable) as raised:
        write_configuration(tmp_path / "file" / "data", "own_x")
    assert "PDPP_DATA_DIR" in raised.value.message
