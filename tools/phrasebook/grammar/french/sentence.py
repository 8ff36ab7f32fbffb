"""French sentences: clauses, states, existentials and compounds."""

from grammar.french.clause import adverb, clause, subject, whether
from grammar.french.elision import elide_and_contract
from grammar.french.nominal import nominal, place
from grammar.french.verb import BE, WAS, inverted_pronoun, predicate
from grammar.lexicon.adjectives import Adjective
from grammar.lexicon.nouns import FEMININE, Noun
from grammar.meaning import (
    Clause,
    Compound,
    Existence,
    Greeting,
    Meaning,
    Nominal,
    Participant,
    Place,
    Pronoun,
    Proposition,
    Report,
    Sequel,
    State,
    final_mark,
    is_feminine,
    is_plural,
    person,
    to_pronoun,
)
from grammar.words import WRITTEN, Style, Word, punctuate

JOINTS = {
    "because": ("parce", "que"),
    "but": ("mais",),
    "and": ("et",),
    "when": ("quand",),
    "if": ("si",),
}
DEGREES = {"very": "très", "too": "trop"}


def sentence(meaning: Meaning, style: Style = WRITTEN) -> list[Word]:
    """Render a meaning as a French sentence."""
    return punctuate(elide_and_contract(_words(meaning)), final_mark(meaning), style)


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
    be = Word(forms[person(meaning.subject)], (f"{mark}be",))
    who = subject(meaning.subject, f"{mark}subject.")
    if meaning.question == "where":
        return [
            Word("où", (f"{mark}asked",)),
            be,
            *_inverted_subject(meaning.subject, be, who, mark),
        ]
    words = whether(mark) if meaning.question else []
    words += who + negate([be], meaning.negated, mark) + _predicate(meaning, mark)
    return words + (adverb(meaning.time.french, f"{mark}time.") if meaning.time else [])


def _inverted_subject(
    who: Participant, be: Word, subject_words: list[Word], mark: str
) -> list[Word]:
    return (
        [inverted_pronoun(who, be.text, f"{mark}subject.")]
        if isinstance(who, Pronoun)
        else subject_words
    )


def negate(verb: list[Word], negated: bool, mark: str) -> list[Word]:
    """Put "ne" and "pas" around a verb."""
    if not negated:
        return verb
    return [Word("ne", (f"{mark}not",)), *verb, Word("pas", (f"{mark}not",))]


def _predicate(meaning: State, mark: str) -> list[Word]:
    predicate, marks = meaning.predicate, (f"{mark}predicate",)
    if predicate is None:
        return []
    if isinstance(predicate, Place):
        return place(predicate, f"{mark}place.", clause)
    if isinstance(predicate, Noun):
        feminine = is_feminine(meaning.subject)
        return [Word(FEMININE[predicate.singular] if feminine else predicate.french, marks)]
    return _adjective(meaning, predicate, mark)


def _adjective(meaning: State, adjective: Adjective, mark: str) -> list[Word]:
    form = adjective.inflect(is_feminine(meaning.subject), is_plural(meaning.subject))
    word = Word(form, (f"{mark}predicate",))
    if meaning.than is not None:
        than = subject(meaning.than, f"{mark}than.")
        return [Word("plus", (f"{mark}degree",)), word, Word("que", (f"{mark}than",)), *than]
    degree = [Word(DEGREES[meaning.degree], (f"{mark}degree",))] if meaning.degree else []
    return [*degree, word]


def existence(meaning: Existence, mark: str = "") -> list[Word]:
    """Render an existential sentence: "there is ..."."""
    be = (f"{mark}be",)
    there = negate([Word("y", be), Word("a", be)], meaning.negated, mark)
    return [
        *(whether(mark) if meaning.question else []),
        Word("il", be),
        *there,
        *nominal(meaning.nominal, f"{mark}subject.", clause, denied=meaning.negated),
        *place(meaning.place, f"{mark}place.", clause),
    ]


def _compound(meaning: Compound) -> list[Word]:
    first, second = proposition(meaning.first, "1."), proposition(meaning.second, "2.")
    joint = [Word(word, ("joint",)) for word in JOINTS[meaning.conjunction]]
    comma = Word(",", ("comma",))
    if meaning.conjunction in ("when", "if"):
        return [*joint, *first, comma, *second]
    return [*first, *([comma] if meaning.conjunction == "but" else []), *joint, *second]


def _report(meaning: Report) -> list[Word]:
    verb = Word(meaning.verb.present[person(meaning.subject)], ("verb", "tense"))
    that = Word("que", ("that",))
    return [*subject(meaning.subject, "subject."), verb, that, *proposition(meaning.content, "2.")]


def _sequel(meaning: Sequel) -> list[Word]:
    """Render two actions with one object: "bought it and repaired it"."""
    assert meaning.clause.object
    more = Clause(
        meaning.frame, meaning.clause.subject, to_pronoun(meaning.clause.object), tense="past"
    )
    return [*clause(meaning.clause), Word("et", ("joint",)), *predicate(more, "2.")]


def _greeting(meaning: Greeting) -> list[Word]:
    words = adverb(meaning.formula.french, "formula.")
    if meaning.addressee is None:
        return words
    return [*words, Word(",", ("comma",)), *subject(meaning.addressee, "addressee.")]
