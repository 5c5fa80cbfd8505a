"""`pdpp semantic`: the model by which records are found by meaning.

Source: docs/contract/resource-server.md 11.6.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import cyclopts
import httpx2
from cyclopts import Parameter

from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, table, words
from personal_server.app.meaning import embedder_of
from personal_server.app.stores import open_stores
from personal_server.cli.kept_data import settings_to_read
from personal_server.cli.server_settings import settings_or_exit
from personal_server.semantics.chosen import (
    GET_PACKAGES,
    NEEDED,
    ChosenModel,
    ModelUnusable,
    endpoint_choice,
    forget_choice,
    keep_folder,
    missing_packages,
    read_choice,
    write_choice,
)
from personal_server.semantics.download import HUB, MULTILINGUAL, DownloadFailed, fetch_model
from personal_server.semantics.embedder import EmbedderFailed
from personal_server.semantics.endpoint import is_of_this_machine
from personal_server.semantics.index import percent_embedded

Flag = Annotated[bool, Parameter(negative="")]
COLUMNS = ("field", "connection", "records", "embedded")


def semantic_app() -> cyclopts.App:
    """The command group `pdpp semantic`."""
    app = cyclopts.App(
        name="semantic", help="Search by meaning, with a language model on this machine."
    )

    @app.command
    def install(
        *,
        from_: Annotated[Path | None, Parameter(name="--from")] = None,
        endpoint: str | None = None,
        model: str | None = None,
        hub: str = HUB,
        send_texts_away: Flag = False,
        yes: Flag = False,
    ) -> None:
        """Choose the model for search by meaning. A running server switches to the new model.

        Without options, this downloads a model for fifty languages. The server then computes an
        embedding of each record in the background. Your records do not leave this machine.

        Parameters
        ----------
        from_
            A model folder in the layout of sentence-transformers, with an ONNX graph (model.onnx)
            and tokenizer.json.
        endpoint
            The address of an embedding server (Ollama, llama.cpp), such as
            http://127.0.0.1:11434/v1; needs --model.
        model
            The name of the model at that address.
        hub
            The address to download the model from.
        send_texts_away
            Allow an address on another machine. That machine then gets the text of every record.
        yes
            Accept a downloaded model without a question.
        """
        data_dir = settings_or_exit().data_dir
        if endpoint is not None:
            _choose_endpoint(data_dir, endpoint, model, send_texts_away=send_texts_away)
            return
        _require_packages()
        if from_ is not None:
            _choose(data_dir, _kept(data_dir, from_, from_.resolve().name))
            return
        with tempfile.TemporaryDirectory(prefix="pdpp-model-") as folder:
            _fetch(Path(folder), hub, yes=yes)
            _choose(data_dir, _kept(data_dir, Path(folder), MULTILINGUAL.name))

    @app.command
    def status(*, json: Flag = False) -> None:
        """Show the model, and for how many records an embedding was computed.

        Parameters
        ----------
        json
            Print JSON.
        """
        chosen = read_choice(
            settings_or_exit().data_dir
        )  # a model may come before the first record
        with (
            settings_to_read(says_so=False) as settings,
            open_stores(settings, serving=False) as stores,
        ):
            progress = stores.records.embedding_progress()
        progress_shown: dict[str, Any] = {
            "model": None if chosen is None else chosen.name,
            "identity": None if chosen is None else chosen.identity,
            "missing_packages": missing_packages(),
            "percent": percent_embedded(progress) if progress else 0,
            "streams": [
                {
                    "connection_id": index.connection_id,
                    "stream": index.stream,
                    "fields": index.fields,
                    "records": index.records,
                    "embedded": max(0, index.records - index.waiting),
                    "percent": percent_embedded([index]),
                }
                for index in progress
            ],
        }
        if json:
            print_json(progress_shown)
            return
        for line in _lines(progress_shown):
            words().print(line, markup=False, soft_wrap=True)
        rows = [
            (f"{e['stream']}.{field}", e["connection_id"], str(e["records"]), f"{e['percent']} %")
            for e in progress_shown["streams"]
            for field in e["fields"]
        ]
        if rows:
            console().print(table(COLUMNS, rows))

    @app.command
    def remove() -> None:
        """Turn search by meaning off, and delete all computed embeddings."""
        was_chosen = forget_choice(settings_or_exit().data_dir)
        words().print(
            "Search by meaning is off. The model and its embeddings will be removed."
            if was_chosen
            else "No model was chosen."
        )

    return app


def _kept(data_dir: Path, folder: Path, name: str) -> ChosenModel:
    try:
        return keep_folder(data_dir, folder, name)
    except ModelUnusable as error:
        raise CommandError("usage", error.sentence) from None
    except OSError:
        raise CommandError("usage", "The folder cannot be read or copied.") from None


def _choose_endpoint(data_dir: Path, url: str, name: str | None, *, send_texts_away: bool) -> None:
    if name is None:
        raise CommandError("usage", "--endpoint needs --model NAME.")
    if urlsplit(url).scheme not in ("http", "https"):
        raise CommandError("usage", "An endpoint is an address, such as http://127.0.0.1:11434/v1.")
    _require_packages(("sqlite_vec",))
    if not is_of_this_machine(url):
        if not send_texts_away:
            raise CommandError(
                "usage",
                (
                    "This address is on another machine, and that machine would get "
                    "the text of every record."
                ),
                "Use an address of this machine, or allow it with --send-texts-away.",
            )
        words().print("The text of every record, and every query, will be sent to that address.")
    _choose(data_dir, endpoint_choice(url, name))


def _fetch(folder: Path, hub: str, *, yes: bool) -> None:
    """Fetch the model that is recommended, and have what nobody verified looked at."""
    with httpx2.Client(timeout=60, follow_redirects=True) as client:
        try:
            digests = fetch_model(
                MULTILINGUAL,
                folder,
                client,
                lambda name, size: words().print(f"fetched {name} ({size // 1024} KiB)"),
                hub,
            )
        except DownloadFailed as error:
            raise CommandError("unavailable", error.sentence) from None
        except OSError:
            raise CommandError("usage", "Not enough disk space for the model.") from None
    unverified = sorted(digests.keys() - MULTILINGUAL.digests.keys())
    if unverified and not yes:
        words().print(
            "These files are not verified. Compare their checksums with those of the publisher:"
        )
        for name in unverified:
            console().print(f"{name} sha256:{digests[name]}", soft_wrap=True, markup=False)
        if not console().is_terminal or input("Use these files? [y/N] ").strip().lower() != "y":
            raise CommandError(
                "usage",
                "The model was not installed.",
                "If the files are right, run this command again with --yes.",
            )


def _require_packages(needed: tuple[str, ...] = NEEDED) -> None:
    missing = [name for name in missing_packages() if name in needed]
    if missing:
        raise CommandError(
            "usage", f"These packages are not installed: {', '.join(missing)}.", f"{GET_PACKAGES}."
        )


def _choose(data_dir: Path, chosen: ChosenModel) -> None:
    """Try the model before it is chosen."""
    embedder = embedder_of(data_dir, chosen, is_for_queries=True)
    try:
        size = len(embedder.embed(["A test sentence."], is_query=True)[0])
    except EmbedderFailed as error:
        raise CommandError("usage", "The model does not work here.", error.next_step) from None
    finally:
        embedder.close()
    write_choice(data_dir, chosen)
    words().print(
        f"The model {chosen.name} works, with {size} dimensions. A running server "
        "starts using it within seconds;"
    )
    words().print("`pdpp semantic status` shows the progress.")


def _lines(progress_shown: dict[str, Any]) -> list[str]:
    if progress_shown["missing_packages"] and progress_shown["model"] is None:
        return [f"Search by meaning is off. To turn it on: {GET_PACKAGES}."]
    if progress_shown["model"] is None:
        return ["Search by meaning is off. To turn it on: pdpp semantic install."]
    return [
        f"Model: {progress_shown['model']}."
        f" {progress_shown['percent']} % of the records can be found by meaning."
    ]


semantic = semantic_app()
