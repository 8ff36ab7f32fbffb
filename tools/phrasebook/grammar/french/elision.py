"""French sound: what words do to each other when they meet, as l'arbre and du pain."""

from grammar.words import Word

VOWELS = tuple("aeiouyàâéèêëîïôùûœ")
_ELIDED = {"le", "la", "de", "ne", "je", "me", "te", "se", "que"}
_CONTRACTED = {
    ("de", "le"): "du",
    ("de", "les"): "des",
    ("à", "le"): "au",
    ("à", "les"): "aux",
}


def opens_with_vowel(word: str) -> bool:
    """Say whether a word sounds as if it began with a vowel; every h of this lexicon is mute."""
    return word.lower().removeprefix("h").startswith(VOWELS)


def elide_and_contract(words: list[Word]) -> list[Word]:
    """Elide and contract what meets; elision comes first, as in "de l'arbre"."""
    return _contract(_elide(words))


def _elide(words: list[Word]) -> list[Word]:
    found = list(words)
    for i, following in enumerate(words[1:]):
        word = words[i]
        if word.text in _ELIDED and opens_with_vowel(following.text):
            found[i] = Word(word.text[:-1] + "'", word.marks)
        elif word.text == "si" and following.text in ("il", "ils"):
            found[i] = Word("s'", word.marks)
    return found


def _contract(words: list[Word]) -> list[Word]:
    found: list[Word] = []
    for word in words:
        joined = _CONTRACTED.get((found[-1].text, word.text)) if found else None
        if joined:
            marks = dict.fromkeys(found.pop().marks + word.marks)
            word = Word(joined, tuple(marks))
        found.append(word)
    return found
