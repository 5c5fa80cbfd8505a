"""The wheels of a release, as they were downloaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from personal_server.upkeep.releases import ReleaseRefused, downloaded_wheels, order_of
from release.signed_digests import write_digests


def release(folder: Path, *versions: str) -> Path:
    """A signed folder with two wheels of each version, and what is no wheel of ours."""
    folder.mkdir()
    for version in versions:
        for part in ("pdpp_kernel", "pdpp_personal_server"):
            (folder / f"{part}-{version}-py3-none-any.whl").write_text(part)
    (folder / "server.json").write_text("{}")
    key = folder.with_suffix(".key")
    private = Ed25519PrivateKey.generate()
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    write_digests(folder, key)
    return folder


def test_the_wheels_of_a_folder_are_one_version(tmp_path: Path) -> None:
    found = downloaded_wheels(release(tmp_path / "release", "0.2.0"))
    assert found.version == "0.2.0"
    assert sorted(file.name for file in found.files) == [
        "pdpp_kernel-0.2.0-py3-none-any.whl",
        "pdpp_personal_server-0.2.0-py3-none-any.whl",
    ]
    assert found.size == len("pdpp_kernel" + "pdpp_personal_server")


@pytest.mark.parametrize("versions", [(), ("0.1.0", "0.2.0")])
def test_a_folder_of_none_or_of_two_versions_is_refused(
    versions: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(ReleaseRefused):
        downloaded_wheels(release(tmp_path / "release", *versions))


def test_a_wheel_that_is_changed_or_was_not_downloaded_is_refused(tmp_path: Path) -> None:
    folder = release(tmp_path / "release", "0.2.0")
    wheel = folder / "pdpp_kernel-0.2.0-py3-none-any.whl"
    wheel.write_text("changed")
    with pytest.raises(ReleaseRefused):
        downloaded_wheels(folder)
    wheel.unlink()
    with pytest.raises(ReleaseRefused):
        downloaded_wheels(folder)


def test_versions_are_compared_by_their_numbers() -> None:
    assert order_of("0.9.0") < order_of("0.10") < order_of("1.0") == order_of("1.0.0+local")


def test_a_trial_of_a_version_is_older_than_it() -> None:
    trials = ("0.9", "1.0.0.dev3", "1.0.0a1", "1.0b2", "1.0rc1", "1.0.0", "1.0.1rc1")
    assert list(map(order_of, trials)) == sorted(set(map(order_of, trials)))
