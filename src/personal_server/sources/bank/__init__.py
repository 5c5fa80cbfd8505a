"""Bank, card and investment statements in OFX (QFX, Quicken, Money)."""

from personal_server.sources.bank.reader import BankSource

__all__ = ["BankSource"]
