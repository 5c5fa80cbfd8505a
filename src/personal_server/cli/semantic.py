"""`pdpp semantic`: the model by which records are found by meaning.

Source: docs/contract/resource-server.md 11.6.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import cyclopts
from cyclopts import Parameter

from personal_server.app.meaning import embedder_of
from personal_server.app.stores import open_stores
from personal_server.cli.exits import CommandError, print_json, settings_or_exit
from personal_server.cli.tables import console, table, words
from personal_server.semantics.chosen import (
    ChosenModel,
    ModelUnusable,
    forget_choice,
    keep_folder,
    missing_packages,
    read_choice,
    write_choice,
)
from personal_server.semantics.embedder import EmbedderFailed
from personal_server.semantics.index import percent_done

Flag = Annotated[bool, Parameter(negative="")]
GET_PACKAGES = "pip install 'pdpp-personal-server[semantic]'"
COLUMNS = ("stream", "connection", "records", "embedded")


def semantic_app() -> cyclopts.App:
    """The command group `pdpp semantic`."""
    app = cyclopts.App(name="semantic", help="Find records by meaning, with a model of your own.")

    @app.command
    def install(*, from_: Annotated[Path, Parameter(name="--from")]) -> None:
        """Choose the model that texts are embedded with; a running server goes over to it.

        Your records are embedded by the server, in the background. Nothing leaves this machine.

        Parameters
        ----------
        from_
            A folder as sentence-transformers lays it out, with an ONNX graph (model.onnx) and
            tokenizer.json.
        """
        _require_packages()
        data_dir = settings_or_exit().data_dir
        try:
            chosen = keep_folder(data_dir, from_, from_.resolve().name)
        except ModelUnusable as error:
            raise CommandError("usage", error.sentence) from None
        except OSError:
            raise CommandError("usage", "The folder cannot be read, or copied.") from None
        _choose(data_dir, chosen)

    @app.command
    def status(*, json: Flag = False) -> None:
        """Show the model, and how many records are embedded.

        Parameters
        ----------
        json
            Print JSON.
        """
        settings = settings_or_exit()
        chosen = read_choice(settings.data_dir)
        with open_stores(settings, serving=False) as stores:
            progress = stores.records.embedding_progress()
        told: dict[str, Any] = {
            "model": None if chosen is None else chosen.name,
            "identity": None if chosen is None else chosen.identity,
            "missing_packages": missing_packages(),
            "percent": percent_done(progress) if progress else 0,
            "streams": [
                {
                    "connection_id": each.connection_id,
                    "stream": each.stream,
                    "records": each.records,
                    "embedded": max(0, each.records - each.waiting),
                }
                for each in progress
            ],
        }
        if json:
            print_json(told)
            return
        for line in _lines(told):
            words().print(line)
        rows = [
            (e["stream"], e["connection_id"], str(e["records"]), str(e["embedded"]))
            for e in told["streams"]
        ]
        if rows:
            console().print(table(COLUMNS, rows))

    @app.command
    def remove() -> None:
        """Choose no model; the server forgets what was embedded."""
        was_chosen = forget_choice(settings_or_exit().data_dir)
        words().print("Removed." if was_chosen else "No model was chosen.")

    return app


def _require_packages() -> None:
    missing = missing_packages()
    if missing:
        raise CommandError("usage", f"Missing here: {', '.join(missing)}.", f"{GET_PACKAGES}.")


def _choose(data_dir: Path, chosen: ChosenModel) -> None:
    """Try the model before it is chosen."""
    embedder = embedder_of(data_dir, chosen, is_for_queries=True)
    try:
        size = len(embedder.embed(["It is tried."], is_query=True)[0])
    except EmbedderFailed as error:
        raise CommandError("usage", "The model embeds nothing here.", error.next_step) from None
    finally:
        embedder.close()
    write_choice(data_dir, chosen)
    words().print(f"{chosen.name}: {size} dimensions. A running server begins within seconds;")
    words().print("`pdpp semantic status` says how far it is.")


def _lines(told: dict[str, Any]) -> list[str]:
    if told["missing_packages"]:
        return [f"Records are found by words. For meaning: {GET_PACKAGES}."]
    if told["model"] is None:
        return ["Records are found by words. For meaning: pdpp semantic install --from FOLDER."]
    return [f"Model: {told['model']}. Embedded: {told['percent']} % of the records."]


semantic = semantic_app()
