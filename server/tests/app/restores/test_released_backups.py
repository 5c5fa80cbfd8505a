"""Backups that earlier versions of the program made come back in this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from personal_server.app.backups import verify_backup
from personal_server.app.restores import restore_backup
from personal_server.settings import Settings
from personal_server.upkeep.backups import NOBODY
from server.tests.app.whole import reopened
from server.tests.console.household import mail_request
from server.tests.storage.released.directory import (
    answers_of,
    asked,
    backup_of,
    released_names,
)

UNSIGNED = "2026-11-first"


@pytest.mark.parametrize("name", released_names())
def test_a_backup_of_a_released_version_answers_as_its_server_did(
    tmp_path: Path, name: str
) -> None:
    path, then = backup_of(name, tmp_path), answers_of(name)
    settings = Settings(data_dir=tmp_path / "back")
    signer = NOBODY if name == UNSIGNED else verify_backup(path, None).signer
    restored = restore_backup(settings, path, None, None, signer)
    assert (restored.manifest.records, restored.manifest.grants) == (91, 2)
    assert restored.waiting == 2
    with reopened(settings) as site:
        refused = {who: site.call("/v1/streams", each) for who, each in then["tokens"].items()}
        assert {who: site.body(page)["error"]["code"] for who, page in refused.items()} == {
            "client": "grant_paused",
            "owner": "invalid_token",
        }
        site.sign_in()
        tokens = {
            "client": site.connect(mail_request())["access_token"],
            "owner": site.owner_token()["access_token"],
        }
        assert asked(site, tokens, then["blob_id"]) == then["answers"]
