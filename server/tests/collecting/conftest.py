"""The machine of an owner, on which imports run."""

from server.tests.cli.conftest import machine

__all__ = ["machine"]
