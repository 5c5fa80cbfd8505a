"""What we use of dateparser, which has no types of its own."""

from datetime import tzinfo

def pop_tz_offset_from_string(date_string: str) -> tuple[str, tzinfo | None]: ...
