"""iCalendar files of everyone."""
