"""Records that the owner planted: the list, planting one, taking one out.

Source: docs/contract/resource-server.md 14.6.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest, InvalidState, NotFound
from personal_server.collecting.canaries import PlantedPlace, plant
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute, acting
from personal_server.granting.canaries import forget_canary, note_canary
from personal_server.reading.ports import ReadPorts
from personal_server.storage.authorization_rows import CanaryRow
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import AuthorizationStore


class PlantableStream(msgspec.Struct, frozen=True):
    """A stream with records, as the form offers it."""

    value: str
    label: str


class CanaryPages(msgspec.Struct, frozen=True):
    """`/owner/canaries`."""

    authorization: AuthorizationStore
    reads: ReadPorts
    catalogs: Catalogs
    pages: Templates
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (
            PageRoute("GET", "/owner/canaries", self.show),
            PageRoute("POST", "/owner/canaries", self.plant),
            PageRoute("POST", "/owner/canaries/remove", self.remove),
        )

    def show(self, visit: PageRequest) -> Response:
        """What is planted, and where something could be."""
        with self.authorization.read() as reader:
            rows = reader.rows(CanaryRow)
        values = {"canaries": rows, "streams": self._streams(), "csrf": visit.owner().csrf}
        return self.pages.show(visit, "canaries.html", values)

    def _streams(self) -> list[PlantableStream]:
        catalog = self.catalogs()
        names = {c.connection_id: c.display_name or c.connector_key for c in catalog.connections}
        with self.reads.snapshot(None) as snapshot:
            stored = snapshot.stored_streams()
        return [
            PlantableStream(
                f"{stream.connection_id}/{stream.stream}",
                f"{stream.stream} · {names.get(stream.connection_id, stream.connector_key)}",
            )
            for stream in stored
            if stream.record_count
        ]

    def plant(self, visit: PageRequest) -> Response:
        """Plant one.  Raises: InvalidRequest."""
        connection_id, _, stream = (visit.value("place") or "").partition("/")
        if not connection_id or not stream:
            raise InvalidRequest(
                "Choose the kind of records that gets the bait record.", param="place"
            )

        def note(place: PlantedPlace) -> None:
            with self.authorization.write() as writer:
                row_key = (place.connection_id, place.stream, place.key)
                note_canary(writer, *row_key, acting(visit), self.clock())

        def forget(place: PlantedPlace) -> None:
            with self.authorization.write() as writer:
                row_key = (place.connection_id, place.stream, place.key)
                forget_canary(writer, *row_key, acting(visit), self.clock())

        chance, now_ns = self.reads.random_bytes, self.clock()
        records, catalog = self.reads.store, self.catalogs()
        try:
            plant(records, catalog, stream, connection_id, note, forget, chance, now_ns)
        except (NotFound, InvalidState) as error:
            raise InvalidRequest(error.text, param="place") from None
        return self.pages.go(visit, "/owner/canaries")

    def remove(self, visit: PageRequest) -> Response:
        """Take one out.  Raises: NotFound."""
        connection_id, stream = visit.value("connection_id") or "", visit.value("stream") or ""
        row_key, now_ns = (connection_id, stream, visit.value("key") or ""), self.clock()
        with self.authorization.write() as writer:
            is_found = forget_canary(writer, *row_key, acting(visit), now_ns)
        if not is_found:
            raise NotFound("There is no such bait record.")
        self.reads.store.delete_record(*row_key, now_ns)
        return self.pages.go(visit, "/owner/canaries")
