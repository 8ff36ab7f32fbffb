"""French noun phrases: articles, adjectives, possessors and relative clauses."""

from collections.abc import Callable

from grammar.french.elision import opens_with_vowel
from grammar.lexicon.nouns import Name
from grammar.lexicon.phrases import PREPOSITIONS
from grammar.meaning import (
    Clause,
    Nominal,
    Participant,
    Place,
    Pronoun,
    is_feminine,
    person,
)
from grammar.words import Word

# masculine, feminine, plural
DETERMINERS = {
    "the": ("le", "la", "les"),
    "this": ("ce", "cette", "ces"),
    "that": ("ce", "cette", "ces"),
    "my": ("mon", "ma", "mes"),
    "your": ("ton", "ta", "tes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
    "a": ("un", "une", "des"),
    "every": ("chaque", "chaque", ""),
    "all the": ("", "", "tous les"),
    "which": ("quel", "quelle", "quels"),
    "many": ("", "", "beaucoup de"),
    "how many": ("", "", "combien de"),
    "two": ("", "", "deux"),
    "three": ("", "", "trois"),
    "four": ("", "", "quatre"),
    "five": ("", "", "cinq"),
    "six": ("", "", "six"),
    "ten": ("", "", "dix"),
}
FEMININE_PLURALS = {"all the": "toutes les", "which": "quelles"}
BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "ta": "ton", "sa": "son"}
STRONG = ("moi", "toi", "lui", "nous", "eux")  # after a preposition
SUBJECTS = ("je", "tu", "il", "nous", "ils")

ClauseRenderer = Callable[[Clause, str], list[Word]]


def subject_pronoun(who: Participant) -> str:
    """Return the pronoun of a subject: "ils", or "elles" when all are feminine."""
    number = person(who)
    if number in (2, 4) and is_feminine(who):
        return "elle" if number == 2 else "elles"
    return SUBJECTS[number]


def nominal(
    thing: Nominal,
    mark: str,
    render_clause: ClauseRenderer,
    article: str = "",
    denied: bool = False,
) -> list[Word]:
    """Render a noun phrase.

    `article` is what things in general take, "le" or "-"; after a negation there is only "de".
    """
    core = _core(thing, mark)
    words = _determiner(thing, mark, core, article, denied) + core
    if thing.content:
        words += [Word("de", (f"{mark}of",)), Word(thing.content.french, (f"{mark}content",))]
    if thing.owner:
        words.append(Word("de", (f"{mark}determiner",)))
        words += _owner(thing.owner, f"{mark}owner.", render_clause)
    return words + _relative(thing, mark, render_clause)


def _core(thing: Nominal, mark: str) -> list[Word]:
    """Render the noun with its adjectives before and after it."""
    noun = thing.noun
    core = [Word(noun.french_plural if thing.plural else noun.french, (f"{mark}noun",))]
    for i, adjective in enumerate(thing.adjectives):
        form = adjective.inflect(noun.feminine, thing.plural)
        marks = (f"{mark}adjective{i}",)
        if not adjective.before:
            core.append(Word(form, marks))
            continue
        alone = not (thing.plural or noun.feminine)
        if alone and len(adjective.french) == 5 and opens_with_vowel(core[0].text):
            form = adjective.french[4]
        core.insert(0, Word(form, marks))
    return core


def _determiner(
    thing: Nominal, mark: str, core: list[Word], article: str, denied: bool
) -> list[Word]:
    # where English has no article, the French one belongs to the noun
    marks = (f"{mark}determiner" if thing.determiner else f"{mark}noun",)
    name = "the" if thing.owner else thing.determiner
    if name in ("a", "some", "any", "") and denied:
        return [Word("de", marks)]
    if name in ("some", "any", ""):
        return _partitive(thing, core, article, marks)
    words = DETERMINERS[name][2 if thing.plural else thing.noun.feminine]
    if thing.plural and thing.noun.feminine:
        words = FEMININE_PLURALS.get(name, words)
    if not thing.plural and opens_with_vowel(core[0].text):
        words = BEFORE_VOWEL.get(words, words)
    return [Word(word, marks) for word in words.split()]


def _partitive(
    thing: Nominal, core: list[Word], article: str, marks: tuple[str, ...]
) -> list[Word]:
    """Render the partitive "du", "de la", "des", or "le" or nothing after some verbs."""
    if article == "-":
        return []
    noun = Word("les" if thing.plural else "la" if thing.noun.feminine else "le", marks)
    if article == "le":
        return [noun]
    if thing.plural and thing.adjectives and thing.adjectives[0].before:
        return [Word("de", marks)]  # de belles pommes
    return [Word("de", marks), noun]


def _owner(who: Participant, mark: str, render_clause: ClauseRenderer) -> list[Word]:
    if isinstance(who, Name):
        return [Word(who.name, (f"{mark}noun",))]
    assert isinstance(who, Nominal)
    return nominal(who, mark, render_clause)


def _relative(thing: Nominal, mark: str, render_clause: ClauseRenderer) -> list[Word]:
    if not thing.relative:
        return []
    that = "qui" if thing.relative.gap == "subject" else "que"
    return [Word(that, (f"{mark}that",)), *render_clause(thing.relative, f"{mark}relative.")]


def place(where: Place, mark: str, render_clause: ClauseRenderer) -> list[Word]:
    """Render a prepositional phrase of place."""
    preposition = PREPOSITIONS[where.preposition].french
    return [
        *(Word(word, (f"{mark}preposition",)) for word in preposition),
        *nominal(where.nominal, mark, render_clause),
    ]


def after_preposition(who: Participant, mark: str, render_clause: ClauseRenderer) -> list[Word]:
    """Render a person after "à" or "avec": "moi", "elle", "mes amis"."""
    if isinstance(who, Pronoun):
        number = person(who)
        strong = subject_pronoun(who) if is_feminine(who) else STRONG[number]
        return [Word(strong, (f"{mark}noun",))]
    return (
        [Word(who.name, (f"{mark}noun",))]
        if isinstance(who, Name)
        else nominal(who, mark, render_clause)
    )
