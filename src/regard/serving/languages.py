"""Languages of a run: from its settings, its file names, or the command line."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from regard.data.phrasebook import phrasebook_language
from regard.errors import RegardError
from regard.runs import RunFolder, find_run

CODE = r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})?"
NAMES = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "eo": "Esperanto",
    "es": "Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "ga": "Irish",
    "gl": "Galician",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "id": "Indonesian",
    "is": "Icelandic",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "ms": "Malay",
    "nb": "Norwegian",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "sv": "Swedish",
    "sw": "Swahili",
    "th": "Thai",
    "tl": "Tagalog",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
"""English names of languages by ISO 639-1 code, as LibreTranslate spells them."""


class LanguagePair(NamedTuple):
    """Codes of the source and the target language.

    Example:
        >>> str(LanguagePair("en", "fr"))
        'en:fr'
    """

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}:{self.target}"


def parse_run(argument: str) -> tuple[Path, LanguagePair]:
    """Return the folder and the languages that an argument `RUN` or `RUN=en:fr` names.

    Args:
        argument: a run folder or "demo-model"; with the languages if the run does not know them.

    Returns:
        The run folder and its languages.

    Raises:
        RegardError: if the folder is not a run, or its languages are unknown.

    Example:
        >>> path, languages = parse_run("demo-model")
        >>> str(languages)
        'en:fr'
        >>> str(parse_run("demo-model=en:fr-CA")[1])
        'en:fr-CA'
    """
    name, _, languages = argument.rpartition("=")
    match = re.fullmatch(rf"({CODE}):({CODE})", languages)
    path = find_run(name if match and name else argument)
    folder = RunFolder(path)
    known = infer_languages(folder)  # also of a folder with given languages: is it a run?
    if match:
        return path, LanguagePair(match[1], match[2])
    if known is None:
        raise RegardError(
            f"the languages of {path} are unknown: neither its settings nor the names of its texts "
            f"say which; name them, as in {path}=en:fr"
        )
    return path, known


def check_languages(pairs: Sequence[LanguagePair]) -> None:
    """Raise RegardError if two of the pairs are equal: a request could mean either run."""
    for pair in pairs:
        if pairs.count(pair) > 1:
            raise RegardError(
                f"each run must have other languages, but two have {pair}; "
                "RUN=en:fr names those of a run"
            )


def infer_languages(folder: RunFolder) -> LanguagePair | None:
    """Return the languages of a run; None if they are unknown.

    They follow from the data set, from the suffixes of two parallel files (`train.en`,
    `train.fr.gz`) or from the name of a TSV file (`pairs.en-fr.tsv`).

    Raises:
        RegardError: if the folder is not a run.
    """
    _, origin = folder.read_settings()
    if phrasebook := phrasebook_language(origin.get("dataset")):
        return LanguagePair("en", phrasebook)
    names = [Path(text).name.removesuffix(".gz") for text in origin["texts"]]
    suffixes = [name.rpartition(".")[2] for name in names[:2]]
    if len(set(suffixes)) == 2 and all(suffix in NAMES for suffix in suffixes):
        return LanguagePair(*suffixes)
    for match in re.finditer(r"(?<![a-z])([a-z]{2})[-_.]([a-z]{2})(?![a-z])", "".join(names[:1])):
        if match[1] in NAMES and match[2] in NAMES and match[1] != match[2]:
            return LanguagePair(match[1], match[2])
    return None


def language_name(code: str) -> str:
    """Return the English name of a language; the code itself if it is not known.

    Example:
        >>> language_name("fr"), language_name("fr-CA"), language_name("qx")
        ('French', 'French (CA)', 'qx')
    """
    base, _, region = code.partition("-")
    if base not in NAMES:
        return code
    return f"{NAMES[base]} ({region})" if region else NAMES[base]
