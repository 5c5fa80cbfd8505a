"""Where the model lies that tests embed with."""

from pathlib import Path

import pytest

MODEL = Path(__file__).parents[3] / ".cache" / "semantic" / "model"
needs_weights = pytest.mark.skipif(
    not (MODEL / "model.onnx").exists(), reason="make .cache/semantic/made.stamp"
)
