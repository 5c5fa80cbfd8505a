"""The model that tells languages apart: that of `py3langid`, over sequences of bytes.

It is read when this module is imported, which takes over a second of a processor, 67 MB for good
and 190 MB for that moment: where a text needs it, and not before.  It is read from memory alone:
the package's own way wants a directory for temporary files, which a server on a read-only system
has not.
"""

from __future__ import annotations

import io
import lzma
from array import array

import numpy as np
from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier

from personal_server.domain.language_names import STEMLESS, STEMMERS

with np.load(io.BytesIO(lzma.decompress((MODEL_DIR / MODEL_FILE).read_bytes()))) as _model:
    _codes: list[str] = _model["classes"].tolist()
    _columns = [at for at, code in enumerate(_codes) if code in {*STEMMERS, *STEMLESS.split()}]
    IDENTIFIER = LanguageIdentifier(
        _model["ptc"][:, _columns],
        _model["pc"][_columns],
        [_codes[at] for at in _columns],
        array("I", _model["nextmove"].astype(np.uint32).tobytes()),
        _model["out_feat"].tolist(),
        norm_probs=True,
        tk_row=_model["nextmove_row"].tolist(),
    )
    """Gives the ISO 639-1 code of a text's language, and how sure that is (`classify`)."""
