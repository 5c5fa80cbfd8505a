"""The languages with a stemmer: their names, codes and families."""

from __future__ import annotations

from collections.abc import Mapping

USUAL_LANGUAGE = "english"
"""That of most texts, and of those too short or too strange to tell, subjects above all."""

STEMMERS: Mapping[str, str] = {
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "tr": "turkish",
}
"""The name of a stemmer, by ISO 639-1."""

LANGUAGE_CODES: Mapping[str, str] = {name: code for code, name in STEMMERS.items()}
"""ISO 639-1, by the name of a stemmer."""

# The fewer families, the less a search asks for, and the more of its stems are other words.
FAMILIES: Mapping[str, str] = {
    "english": "en",
    **dict.fromkeys(("danish", "dutch", "german", "norwegian", "swedish"), "gem"),
    **dict.fromkeys(("catalan", "french", "italian", "portuguese", "romanian", "spanish"), "roa"),
}
OTHER_FAMILY = "other"

STEMLESS = (
    "af az be bg br bs cs cy eo fo fy gd gl hr is ka kk ku ky la lb lv mg mk mn mt oc pl"
    " qu sk sl so sq sw tg tk tl tt uk uz vi yo zu"
)
"""Languages without a stemmer that a text of Latin or Cyrillic letters may be in; with them it is
told that a text is in none of the others."""
