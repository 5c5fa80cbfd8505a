"""The version of this program, as it is installed."""

from importlib.metadata import version

VERSION = version("pdpp-personal-server")
