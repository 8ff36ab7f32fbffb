"""French clauses: questions, complements and the order of words."""

from grammar.french.nominal import after_preposition, nominal, place, subject_pronoun
from grammar.french.verb import predicate
from grammar.lexicon.nouns import Name
from grammar.lexicon.phrases import Parts
from grammar.meaning import Clause, Nominal, Participant, Pronoun
from grammar.words import Word

ASKED = {"who": "qui", "what": "que", "where": "où", "when": "quand", "why": "pourquoi"}


def adverb(parts: Parts, mark: str) -> list[Word]:
    """Say a set phrase; its numbers say which words are counterparts."""
    return [Word(word, tuple(mark + number for number in numbers)) for word, numbers in parts]


def subject(who: Participant, mark: str) -> list[Word]:
    """Say who acts."""
    if isinstance(who, Pronoun):
        return [Word(subject_pronoun(who), (f"{mark}noun",))]
    if isinstance(who, Name):
        return [Word(who.name, (f"{mark}noun",))]
    return nominal(who, mark, clause)


def clause(told: Clause, mark: str = "") -> list[Word]:
    """Say a clause; in a relative clause without the word it stands by."""
    inverted = turns(told)
    words = _opening(told, mark, inverted)
    if not (inverted or told.question == "who" or told.gap == "subject"):
        words += subject(told.subject, f"{mark}subject.")
    return words + predicate(told, mark, inverted) + _complements(told, mark)


def turns(told: Clause) -> bool:
    """A pronoun stands behind the verb after "où" and its like; never "je", by usage."""
    asked = told.question not in ("", "whether", "who")
    return asked and isinstance(told.subject, Pronoun) and told.subject.word != "I"


def whether(mark: str) -> list[Word]:
    """Open a question that keeps the order of a statement."""
    return [Word("est-ce", (f"{mark}whether",)), Word("que", (f"{mark}whether",))]


def _opening(told: Clause, mark: str, inverted: bool) -> list[Word]:
    """Say what stands before the subject: the time, or what is asked for."""
    if not told.question:
        if told.time and told.fronted:
            return [*adverb(told.time.french, f"{mark}time."), Word(",", (f"{mark}comma",))]
        return []
    words = []
    if told.question == "which":
        assert isinstance(told.object, Nominal)
        words = nominal(told.object, f"{mark}object.", clause)
    elif told.question != "whether":
        words = [Word(ASKED[told.question], (f"{mark}asked",))]
    return words if inverted or told.question == "who" else words + whether(mark)


def _complements(told: Clause, mark: str) -> list[Word]:
    """Say what follows the verb: the object, who receives it, with whom, where and when."""
    words = _object(told, mark)
    if told.recipient and not isinstance(told.recipient, Pronoun):
        direct = told.frame.recipient == "-"  # English calls someone, French calls to someone
        words.append(Word("à", (f"{mark}verb" if direct else f"{mark}recipient.to",)))
        words += after_preposition(told.recipient, f"{mark}recipient.", clause)
    if told.companion:
        words.append(Word("avec", (f"{mark}with",)))
        words += after_preposition(told.companion, f"{mark}companion.", clause)
    if told.place:
        words += place(told.place, f"{mark}place.", clause)
    if told.time and not told.fronted:
        words += adverb(told.time.french, f"{mark}time.")
    return words


def _object(told: Clause, mark: str) -> list[Word]:
    verb, thing = told.frame.verb, told.object
    if thing is None or isinstance(thing, Pronoun):
        return []
    if told.question == "which" or told.gap == "object":
        return []
    if isinstance(thing, Name):
        return [Word(thing.name, (f"{mark}object.noun",))]
    never = told.often is not None and told.often.french[0][0] == "jamais"
    denied = (told.negated or never) and not verb.article and not verb.preposition
    of = [Word(verb.preposition, (f"{mark}verb",))] if verb.preposition else []
    return of + nominal(thing, f"{mark}object.", clause, verb.article, denied)
