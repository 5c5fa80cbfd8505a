"""What we use of vobject, which has no types."""

# ruff: noqa: N802, N803 (their names)

def stringToTextValues(
    s: str, listSeparator: str = ",", charList: str | None = None, strict: bool = False
) -> list[str]: ...
