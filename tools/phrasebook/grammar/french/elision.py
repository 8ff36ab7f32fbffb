"""French elision and contraction: l'arbre, du pain."""

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
    """Return whether a word begins with a vowel sound; every h of this lexicon is mute."""
    return word.lower().removeprefix("h").startswith(VOWELS)


def elide_and_contract(words: list[Word]) -> list[Word]:
    """Apply elision and then contraction: "de l'arbre", "du pain"."""
    return _contract(_elide(words))


def _elide(words: list[Word]) -> list[Word]:
    result = list(words)
    for i, following in enumerate(words[1:]):
        word = words[i]
        if word.text in _ELIDED and opens_with_vowel(following.text):
            result[i] = Word(word.text[:-1] + "'", word.marks)
        elif word.text == "si" and following.text in ("il", "ils"):
            result[i] = Word("s'", word.marks)
    return result


def _contract(words: list[Word]) -> list[Word]:
    result: list[Word] = []
    for word in words:
        joined = _CONTRACTED.get((result[-1].text, word.text)) if result else None
        if joined:
            marks = dict.fromkeys(result.pop().marks + word.marks)
            word = Word(joined, tuple(marks))
        result.append(word)
    return result
