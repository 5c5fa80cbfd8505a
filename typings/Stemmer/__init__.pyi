from collections.abc import Sequence

class Stemmer:
    def __init__(self, algorithm: str, maxCacheSize: int = ..., /) -> None: ...  # noqa: N803
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802 (the library's name)
    def stemWords(self, words: Sequence[str], /) -> list[str]: ...  # noqa: N802
