"""English noun phrases: articles, adjectives, possessors and relative clauses."""

from collections.abc import Callable

from grammar.lexicon.nouns import Name
from grammar.lexicon.phrases import PREPOSITIONS
from grammar.meaning import Clause, Nominal, Participant, Place, Pronoun
from grammar.words import Word

OBJECT_FORMS = {
    "I": "me",
    "you": "you",
    "he": "him",
    "she": "her",
    "it": "it",
    "we": "us",
    "they": "them",
}
PLURAL_FORMS = {"this": "these", "that": "those"}

ClauseRenderer = Callable[[Clause, str], list[Word]]


def participant(
    who: Participant, mark: str, render_clause: ClauseRenderer, subject: bool = True
) -> list[Word]:
    """Render a subject or object; `render_clause` renders relative clauses."""
    if isinstance(who, Pronoun):
        return [Word(who.word if subject else OBJECT_FORMS[who.word], (f"{mark}noun",))]
    if isinstance(who, Name):
        return [Word(who.name, (f"{mark}noun",))]
    return nominal(who, mark, render_clause)


def nominal(thing: Nominal, mark: str, render_clause: ClauseRenderer) -> list[Word]:
    """Render a noun phrase."""
    noun = thing.noun
    rest = [
        Word(adjective.english, (f"{mark}adjective{i}",))
        for i, adjective in enumerate(thing.adjectives)
    ]
    rest.append(Word(noun.plural if thing.plural else noun.singular, (f"{mark}noun",)))
    if thing.content:
        rest += [Word("of", (f"{mark}of",)), Word(thing.content.singular, (f"{mark}content",))]
    return (
        _determiner(thing, mark, rest[0].text, render_clause)
        + rest
        + _relative(thing, mark, render_clause)
    )


def _determiner(
    thing: Nominal, mark: str, following: str, render_clause: ClauseRenderer
) -> list[Word]:
    name, marks = thing.determiner, (f"{mark}determiner",)
    if thing.owner:
        return [*participant(thing.owner, f"{mark}owner.", render_clause), Word("'s", marks)]
    if name == "":
        return []
    if name == "a" and following[0] in "aeiou":
        return [Word("an", marks)]
    if thing.plural:
        name = PLURAL_FORMS.get(name, name)
    return [Word(word, marks) for word in name.split()]


def _relative(thing: Nominal, mark: str, render_clause: ClauseRenderer) -> list[Word]:
    if not thing.relative:
        return []
    for_person = thing.relative.gap == "subject" and "person" in thing.noun.kinds
    that = Word("who" if for_person else "that", (f"{mark}that",))
    return [that, *render_clause(thing.relative, f"{mark}relative.")]


def place(where: Place, mark: str, render_clause: ClauseRenderer) -> list[Word]:
    """Render a prepositional phrase of place."""
    preposition = PREPOSITIONS[where.preposition].english
    return [
        *(Word(word, (f"{mark}preposition",)) for word in preposition),
        *nominal(where.nominal, mark, render_clause),
    ]
