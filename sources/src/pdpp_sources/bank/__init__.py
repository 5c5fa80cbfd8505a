"""Bank, card and investment statements in OFX (QFX, Quicken, Money)."""

from pdpp_sources.bank.reader import BankSource

__all__ = ["BankSource"]
