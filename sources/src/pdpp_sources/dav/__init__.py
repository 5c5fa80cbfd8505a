"""Calendars and address books of accounts, read over WebDAV."""
