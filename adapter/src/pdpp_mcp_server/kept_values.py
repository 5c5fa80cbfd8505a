"""A property that is worked out once: `functools.cached_property` without a lock.

That of 3.11 takes a lock shared by all objects, longer than most work; that of 3.12 takes none.
"""

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    kept_property = functools.cached_property
else:

    class kept_property:  # noqa: N801 (as it is called there)
        """A value of an object that does not change.  Shapes: the object has a `__dict__`."""

        def __init__(self, work_out: Any) -> None:
            self.work_out, self.__doc__ = work_out, work_out.__doc__

        def __get__(self, instance: Any, owner: type) -> Any:
            """The value, which is found without asking here from now on."""
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.work_out.__name__, self.work_out(instance))
