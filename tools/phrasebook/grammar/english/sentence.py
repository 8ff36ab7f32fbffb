"""English sentences: clauses, states, existentials and compounds."""

from grammar.english.clause import BE, WAS, adverb, clause
from grammar.english.nominal import nominal, participant, place
from grammar.lexicon.adjectives import Adjective
from grammar.lexicon.nouns import Noun
from grammar.meaning import (
    Clause,
    Compound,
    Existence,
    Greeting,
    Meaning,
    Nominal,
    Place,
    Proposition,
    Report,
    Sequel,
    State,
    final_mark,
    person,
    to_pronoun,
)
from grammar.words import WRITTEN, Style, Word, punctuate


def sentence(meaning: Meaning, style: Style = WRITTEN) -> list[Word]:
    """Render a meaning as an English sentence."""
    words = _words(meaning)
    if not style.capital:
        words = [word._replace(text="i") if word.text == "I" else word for word in words]
    return punctuate(words, final_mark(meaning), style)


def _words(meaning: Meaning) -> list[Word]:
    if isinstance(meaning, Compound):
        return _compound(meaning)
    if isinstance(meaning, Report):
        return _report(meaning)
    if isinstance(meaning, Sequel):
        return _sequel(meaning)
    if isinstance(meaning, Greeting):
        return _greeting(meaning)
    if isinstance(meaning, Nominal):
        return nominal(meaning, "", clause)
    return proposition(meaning)


def proposition(meaning: Proposition, mark: str = "") -> list[Word]:
    """Render a clause, a state or an existence."""
    if isinstance(meaning, Clause):
        return clause(meaning, mark)
    return state(meaning, mark) if isinstance(meaning, State) else existence(meaning, mark)


def state(meaning: State, mark: str = "") -> list[Word]:
    """Render a state: a subject and what it is like, or where it is."""
    forms = WAS if meaning.past else BE
    be = Word(forms[person(meaning.subject)], (f"{mark}be", *_asked(meaning, mark)))
    subject = participant(meaning.subject, f"{mark}subject.", clause)
    words = [be, *subject] if meaning.question else [*subject, be]
    if meaning.question == "where":
        words.insert(0, Word("where", (f"{mark}asked",)))
    if meaning.negated:
        words.append(Word("not", (f"{mark}not",)))
    words += _predicate(meaning, mark)
    return words + (adverb(meaning.time.english, f"{mark}time.") if meaning.time else [])


def _asked(meaning: State | Existence, mark: str) -> tuple[str, ...]:
    return (f"{mark}whether",) if meaning.question == "whether" else ()


def _predicate(meaning: State, mark: str) -> list[Word]:
    predicate, marks = meaning.predicate, (f"{mark}predicate",)
    if predicate is None:
        return []
    if isinstance(predicate, Place):
        return place(predicate, f"{mark}place.", clause)
    if isinstance(predicate, Noun):
        return [Word("a", (f"{mark}be",)), Word(predicate.singular, marks)]
    return _adjective(meaning, predicate, mark)


def _adjective(meaning: State, adjective: Adjective, mark: str) -> list[Word]:
    marks = (f"{mark}predicate",)
    if meaning.than is None:
        degree = [Word(meaning.degree, (f"{mark}degree",))] if meaning.degree else []
        return [*degree, Word(adjective.english, marks)]
    more = (f"{mark}degree",)
    compared = [Word("more", more), Word(adjective.english, marks)]
    if not adjective.comparative.startswith("more"):
        compared = [Word(adjective.comparative, (*more, *marks))]
    than = participant(meaning.than, f"{mark}than.", clause)
    return [*compared, Word("than", (f"{mark}than",)), *than]


def existence(meaning: Existence, mark: str = "") -> list[Word]:
    """Render an existential sentence: "there is ..."."""
    be = Word("are" if meaning.nominal.plural else "is", (f"{mark}be", *_asked(meaning, mark)))
    there = Word("there", (f"{mark}be",))
    denied = [Word("no", (f"{mark}not",))] if meaning.negated else []
    return [
        *([be, there] if meaning.question else [there, be]),
        *denied,
        *nominal(meaning.nominal, f"{mark}subject.", clause),
        *place(meaning.place, f"{mark}place.", clause),
    ]


def _compound(meaning: Compound) -> list[Word]:
    first, second = proposition(meaning.first, "1."), proposition(meaning.second, "2.")
    joint, comma = Word(meaning.conjunction, ("joint",)), Word(",", ("comma",))
    if meaning.conjunction in ("when", "if"):
        return [joint, *first, comma, *second]
    return [*first, *([comma] if meaning.conjunction == "but" else []), joint, *second]


def _report(meaning: Report) -> list[Word]:
    third = person(meaning.subject) == 2
    verb = Word(meaning.verb.third if third else meaning.verb.base, ("verb", "tense"))
    subject = participant(meaning.subject, "subject.", clause)
    return [*subject, verb, Word("that", ("that",)), *proposition(meaning.content, "2.")]


def _sequel(meaning: Sequel) -> list[Word]:
    """Render two actions with one object: "bought it and repaired it"."""
    assert meaning.clause.object
    verb = Word(meaning.frame.verb.past, ("2.verb", "2.tense"))
    pronoun = participant(to_pronoun(meaning.clause.object), "2.object.", clause, subject=False)
    return [*clause(meaning.clause), Word("and", ("joint",)), verb, *pronoun]


def _greeting(meaning: Greeting) -> list[Word]:
    words = adverb(meaning.formula.english, "formula.")
    if meaning.addressee is None:
        return words
    return [*words, Word(",", ("comma",)), *participant(meaning.addressee, "addressee.", clause)]
