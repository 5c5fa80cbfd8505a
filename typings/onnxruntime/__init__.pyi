from collections.abc import Mapping, Sequence
from typing import Any

class SessionOptions:
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int

class _Input:
    name: str

class InferenceSession:
    def __init__(self, path: str, options: SessionOptions, *, providers: Sequence[str]) -> None: ...
    def get_inputs(self) -> Sequence[_Input]: ...
    def run(self, outputs: None, given: Mapping[str, Any]) -> Sequence[Any]: ...
