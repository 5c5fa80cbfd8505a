"""Write a data directory of this version, for later versions to open.

python -m server.tests.storage.released NAME
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from server.tests.storage.released.directory import write_released

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_released(Path(folder), sys.argv[1])
