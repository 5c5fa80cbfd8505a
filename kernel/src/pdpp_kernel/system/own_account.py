"""The account of the system under which this process runs."""

from __future__ import annotations

import os
import pwd


def own_number() -> int:
    """The number of the account whose rights this process has."""
    return os.geteuid()


def own_name() -> str:
    """Its name; in a container it may have a number alone."""
    try:
        return pwd.getpwuid(own_number()).pw_name
    except KeyError:
        return str(own_number())


def is_own(found: os.stat_result) -> bool:
    """Whether a file is of this account."""
    return found.st_uid == own_number()
