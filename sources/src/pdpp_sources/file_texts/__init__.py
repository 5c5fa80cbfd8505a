"""The text of files that came with records: documents, tables, pages, calendars, mails."""
