"""`pdpp export`: everything you have, as a file or on standard output.

Source: docs/contract/resource-server.md 14.4.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, Annotated, Literal

from cyclopts import Parameter

from pdpp_kernel.errors import ConnectionNotFound, NotFound
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import words
from personal_server.app.owner_store import OwnerStore
from personal_server.cli.kept_data import open_existing_store
from personal_server.cli.store import StoreOpener
from personal_server.reading.export import (
    Enclosures,
    ExportArchive,
    OwnerExport,
    export_lines,
    extent_of,
    stored_grants,
)
from personal_server.reading.shown_disclosures import every_disclosure
from personal_server.storage.damage import MEND_RECORDS

Form = Literal["ndjson", "tar", "zip"]
FORMS: Mapping[str, Form] = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".tar": "tar",
    ".zip": "zip",
    "": "ndjson",
}


def export_command(open_store: StoreOpener) -> Callable[..., None]:
    """The command `pdpp export`."""

    def export(
        output: Path | None = None,
        /,
        *,
        format: Annotated[Form | None, Parameter(name="--format")] = None,
        connection: str | None = None,
        stream: str | None = None,
        blobs: Annotated[bool, Parameter(name="--blobs", negative="--no-blobs")] = True,
        asked: Annotated[bool, Parameter(negative="")] = False,
    ) -> None:
        """Export your records, as lines or as an archive with files; `pdpp import` reads it again.

        Parameters
        ----------
        output
            The file to write. Default: standard output.
        format
            `ndjson`, or `tar` or `zip` (with files, grants and the read log). Default: by the name
            of the file.
        connection
            Only this account, by connection id.
        stream
            Only records of this stream.
        blobs
            Include files in an archive; `--no-blobs` leaves them out.
        asked
            Include in the read log what apps asked and which records they got.
        """
        if format is None and output is not None and output.suffix not in FORMS:
            raise CommandError(
                "usage",
                f"The file name must end in {' or '.join(name for name in FORMS if name)}.",
                "Rename the file, or choose a format: --format ndjson, tar or zip.",
            )
        form = format or FORMS[output.suffix if output else ""]
        if asked and form == "ndjson":
            raise CommandError(
                "usage",
                "--asked works only with an archive, because only archives contain the read log.",
                "Export an archive: pdpp export FILE.tar --asked",
            )
        with (
            open_store() as store,
            closing(
                _export(store, form, connection, stream, with_blobs=blobs, with_asked=asked)
            ) as chunks,
        ):
            if output is None:
                _print(chunks)
                _tell_of_damage(store)
                return
            with _private_file(output) as file:
                size_bytes = sum(file.write(chunk) for chunk in chunks)
        words().print(f"{size_bytes:,} bytes in {output}.")
        _tell_of_damage(store)

    return export


def _export(
    store: OwnerStore,
    form: Form,
    connection: str | None,
    stream: str | None,
    *,
    with_blobs: bool,
    with_asked: bool,
) -> OwnerExport:
    with ExitStack() as opening:
        snapshot = opening.enter_context(store.reads.snapshot(None))
        extent = extent_of(snapshot, connection, stream, store.reads.planted())
        if connection is not None and not extent.connections:
            raise ConnectionNotFound(
                "No account has this id.",
                next_step="The page of each account, under Records, says its id.",
            )
        if stream is not None and not extent.streams:
            raise NotFound("No account has records of this stream.")
        now_ns = store.clock()
        if form == "ndjson":
            lines = export_lines(snapshot, extent, now_ns, store.reads.sign_export)
            return OwnerExport(lines, iter(()), opening.pop_all().close)
        enclosures = Enclosures(
            lambda: stored_grants(store.authorization),
            lambda: every_disclosure(store.disclosures, with_asked=with_asked),
            store.reads.store.person_corrections,
        )
        open_blob = store.reads.store.open_blob if with_blobs else _no_blob
        archive = ExportArchive(now_ns, form, store.reads.sign_export)
        return OwnerExport(
            archive.records(snapshot, extent),
            archive.rest(enclosures, open_blob),
            opening.pop_all().close,
        )


def _tell_of_damage(store: OwnerStore) -> None:
    """What was met while exporting is not in the file, whose end names it."""
    if store.damage.since_ns is not None:
        words().print(f"The export is incomplete. {MEND_RECORDS}")


def _no_blob(blob_id: str) -> None:
    del blob_id


def _print(chunks: Iterable[bytes]) -> None:
    if sys.stdout.isatty():
        raise CommandError(
            "usage",
            "An export is not printed to a terminal.",
            "Name a file: pdpp export FILE",
        )
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


@contextmanager
def _private_file(path: Path) -> Generator[IO[bytes], None, None]:
    """A file that appears whole or not at all, readable by its owner only."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".export-", delete=False) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
        Path(file.name).replace(path)
    except OSError:
        raise CommandError(
            "unavailable",
            f"The export cannot be written to {path}.",
            "Choose another file or folder for the export.",
        ) from None


export = export_command(open_existing_store)
