stoplists: dict[str, frozenset[str]]
