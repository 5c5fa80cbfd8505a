"""E-mail: mbox files (Gmail, Thunderbird, Apple Mail), Maildir folders, single messages."""

from pdpp_sources.mail.reader import MailSource

__all__ = ["MailSource"]
