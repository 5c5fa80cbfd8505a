"""The machine of an owner, on which imports run."""

from tests.cli.conftest import machine

__all__ = ["machine"]
