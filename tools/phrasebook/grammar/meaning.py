"""Meanings: language-independent representations of sentences."""

from typing import Literal, NamedTuple, TypeAlias

from grammar.lexicon.adjectives import Adjective
from grammar.lexicon.frames import Frame
from grammar.lexicon.nouns import Name, Noun
from grammar.lexicon.phrases import Adverb, Formula
from grammar.lexicon.verbs import Verb

Tense: TypeAlias = Literal["simple", "progressive", "past", "future", "going", "modal"]
Question: TypeAlias = Literal["", "whether", "who", "what", "which", "where", "when", "why"]

PERSONS = {"I": 0, "you": 1, "he": 2, "she": 2, "it": 2, "we": 3, "they": 4}


class Pronoun(NamedTuple):
    """A pronoun by its English subject form, and the noun it stands for, if one does."""

    word: str
    noun: Noun | None = None


class Nominal(NamedTuple):
    """A noun phrase: "Marie's three black cats that sleep"."""

    noun: Noun
    determiner: str = "the"  # English; "" for none, "'s" with an owner, a number in letters
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    owner: "Participant | None" = None
    content: Noun | None = None  # the tea in "a cup of tea"
    relative: "Clause | None" = None


Participant: TypeAlias = Nominal | Pronoun | Name


class Place(NamedTuple):
    """A preposition, by its English name, and its noun phrase."""

    preposition: str
    nominal: Nominal


class Clause(NamedTuple):
    """Someone does something.

    In a relative clause, the gap is the role of the noun that the clause stands by.
    """

    frame: Frame
    subject: Participant
    object: Participant | None = None
    recipient: Participant | None = None
    companion: Participant | None = None
    place: Place | None = None
    time: Adverb | None = None
    fronted: bool = False  # the time opens the sentence
    often: Adverb | None = None
    tense: Tense = "simple"
    modal: str = ""  # "can", "must", "want", "like"
    negated: bool = False
    question: Question = ""
    gap: Literal["", "subject", "object"] = ""


class State(NamedTuple):
    """A subject with an adjective, a place or a profession."""

    subject: Participant
    predicate: Adjective | Noun | Place | None  # None asks where
    degree: str = ""  # "very", "too"
    than: Participant | None = None
    time: Adverb | None = None
    past: bool = False
    negated: bool = False
    question: Question = ""


class Existence(NamedTuple):
    """An existential statement: there is something somewhere."""

    nominal: Nominal
    place: Place
    negated: bool = False
    question: Question = ""


Proposition: TypeAlias = Clause | State | Existence


class Compound(NamedTuple):
    """Two propositions joined by "because", "but", "when" or "if"; the last two come first."""

    conjunction: str
    first: Proposition
    second: Proposition


class Report(NamedTuple):
    """Reported speech: someone thinks, says, knows or hopes something."""

    subject: Participant
    verb: Verb
    content: Proposition


class Sequel(NamedTuple):
    """Two actions with the same subject and object."""

    clause: Clause
    frame: Frame


class Greeting(NamedTuple):
    """A formula, and whom it addresses: "Good morning, Marie!"."""

    formula: Formula
    addressee: Participant | None = None
    exclaimed: bool = False


Meaning: TypeAlias = Proposition | Compound | Report | Sequel | Greeting | Nominal


def final_mark(meaning: Meaning) -> str:
    """Return the mark that ends a sentence."""
    if isinstance(meaning, Greeting):
        return "?" if meaning.formula.is_question else "!" if meaning.exclaimed else "."
    return "?" if isinstance(meaning, Proposition) and meaning.question else "."


def is_plural(participant: Participant) -> bool:
    """Return whether a participant is plural."""
    if isinstance(participant, Nominal):
        return participant.plural
    return isinstance(participant, Pronoun) and participant.word in ("we", "they")


def is_feminine(participant: Participant) -> bool:
    """Return whether French treats a participant as feminine; unknown gender is masculine."""
    if isinstance(participant, Nominal):
        return participant.noun.feminine
    if isinstance(participant, Pronoun) and participant.noun:
        return participant.noun.feminine
    return pronoun_of(participant) == "she"


def person(participant: Participant) -> int:
    """Return the index of the verb form: I, you, he, we, they."""
    return PERSONS[pronoun_of(participant)]


def pronoun_of(participant: Participant) -> str:
    """Return the English pronoun for a participant."""
    if isinstance(participant, Pronoun):
        return participant.word
    if isinstance(participant, Name):
        return participant.pronoun
    return "they" if participant.plural else participant.noun.pronoun


def to_pronoun(participant: Participant) -> Pronoun:
    """Return a pronoun that refers to a participant."""
    if isinstance(participant, Pronoun):
        return participant
    noun = participant.noun if isinstance(participant, Nominal) else None
    return Pronoun(pronoun_of(participant), noun)
