"""Reads are tested through the routes of `/v1`, over the same journal."""

from server.tests.resource_server.conftest import any_store, door

__all__ = ["any_store", "door"]
