"""What we use of dateparser, which has no types of its own."""

from datetime import datetime

class DateData:
    date_obj: datetime | None

class DateDataParser:
    def __init__(self, settings: dict[str, object] | None = None) -> None: ...
    def get_date_data(self, date_string: str) -> DateData: ...
