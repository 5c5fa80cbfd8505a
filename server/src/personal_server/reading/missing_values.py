"""What a condition leaves out beside what it names: records without a value.

Rule: it follows from the request and the declarations alone, whatever is stored.
Source: docs/contract/resource-server.md 2.3, 7.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pdpp_kernel.criteria import Condition
from pdpp_kernel.declaration import Stream
from pdpp_kernel.operators import Operator
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource


def without_value(
    sources: Sequence[ReadableSource], conditions: Iterable[Condition]
) -> tuple[Warning, ...]:
    """Of each `ne` on a field that a record may lack: that it leaves out those records, too."""
    denied = dict.fromkeys(each.field for each in conditions if each.operator is Operator.NE)
    declared = [source.declared for source in sources]
    return tuple(
        Warning(
            "without_value",
            f"Records without a value of '{name}' are left out here, too; 'exists' finds them.",
            field=name,
        )
        for name in denied
        if any(_may_lack(each, name) for each in declared)
    )


def _may_lack(stream: Stream, name: str) -> bool:
    field = stream.properties.get(name)
    return field is not None and (field.nullable or name not in stream.required)
