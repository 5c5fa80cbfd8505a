from collections.abc import Sequence
from enum import Enum
from pathlib import Path

class QuantType(Enum):
    QInt8 = 0

def quantize_dynamic(
    model_input: Path,
    model_output: Path,
    *,
    op_types_to_quantize: Sequence[str],
    per_channel: bool,
    weight_type: QuantType,
) -> None: ...
