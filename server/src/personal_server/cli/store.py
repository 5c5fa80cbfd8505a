"""The store of this machine, as commands of its owner open it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from pdpp_kernel.system.memory_images import forbid_core_dumps
from pdpp_kernel.system.own_account import own_name
from pdpp_sources.reader_process import RECIPES, CostlyPlaces, ReaderProcess
from personal_server.app.export_signer import ExportSigner
from personal_server.app.stores import open_stores
from personal_server.cli.server_settings import settings_or_exit
from personal_server.collecting.imports import ImportPorts
from personal_server.granting.audit import Acting
from personal_server.upkeep.logs import ChainedLogs
from personal_server.upkeep.ownership import require_own_files

if TYPE_CHECKING:
    from personal_server.app.owner_store import OwnerStore

StoreOpener = Callable[[], AbstractContextManager["OwnerStore"]]
ImportOpener = Callable[[], AbstractContextManager[ImportPorts]]
FED_BATCH_PARTS = 16
LogOpener = Callable[[], AbstractContextManager[ChainedLogs]]
ReaderOpener = Callable[[], AbstractContextManager[ReaderProcess]]


def make_store() -> AbstractContextManager[OwnerStore]:
    """Grants, disclosures and records, for a command that may be the first of a data directory."""
    from personal_server.app.owner_store import open_owner_store  # noqa: PLC0415 (grants need it)

    return open_owner_store(settings_or_exit())


def local_acting() -> Acting:
    """Who runs this command, for the audit."""
    return Acting("local_cli", user=own_name())


@contextmanager
def open_imports(*, takes_little: bool = False) -> Generator[ImportPorts, None, None]:
    """The records, for an import; one that nobody waits for takes little memory."""
    with open_stores(settings_or_exit(), serving=False) as stores:
        if takes_little:
            stores.database.keep_few_pages()
        signer = ExportSigner(stores.data_dir, stores.random_bytes)
        yield ImportPorts(
            stores.records,
            stores.clock,
            stores.random_bytes,
            own_signer=signer.name,
            batch_parts=FED_BATCH_PARTS if takes_little else 1,
        )


def open_reader() -> ReaderProcess:
    """The process that reads the owner's exports; it cannot look into this one."""
    forbid_core_dumps()
    folder = settings_or_exit().data_dir
    require_own_files(folder)
    return ReaderProcess(CostlyPlaces(folder / "costly-places.json"), recipes=folder / RECIPES)
