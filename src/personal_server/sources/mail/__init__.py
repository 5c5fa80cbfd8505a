"""E-mail: mbox files (Gmail, Thunderbird, Apple Mail), Maildir folders, single messages."""

from personal_server.sources.mail.reader import MailSource

__all__ = ["MailSource"]
