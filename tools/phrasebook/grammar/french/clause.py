"""French clauses: questions, complements and word order."""

from grammar.french.nominal import after_preposition, nominal, place, subject_pronoun
from grammar.french.verb import predicate
from grammar.lexicon.nouns import Name
from grammar.lexicon.phrases import Parts
from grammar.meaning import Clause, Nominal, Participant, Pronoun
from grammar.words import Word

ASKED = {"who": "qui", "what": "que", "where": "où", "when": "quand", "why": "pourquoi"}


def adverb(parts: Parts, mark: str) -> list[Word]:
    """Render a fixed phrase; its numbers say which words are aligned."""
    return [Word(word, tuple(mark + number for number in numbers)) for word, numbers in parts]


def subject(who: Participant, mark: str) -> list[Word]:
    """Render a subject."""
    if isinstance(who, Pronoun):
        return [Word(subject_pronoun(who), (f"{mark}noun",))]
    if isinstance(who, Name):
        return [Word(who.name, (f"{mark}noun",))]
    return nominal(who, mark, clause)


def clause(meaning: Clause, mark: str = "") -> list[Word]:
    """Render a clause; a relative clause lacks the noun that it modifies."""
    inverted = is_inverted(meaning)
    words = _opening(meaning, mark, inverted)
    if not (inverted or meaning.question == "who" or meaning.gap == "subject"):
        words += subject(meaning.subject, f"{mark}subject.")
    return words + predicate(meaning, mark, inverted) + _complements(meaning, mark)


def is_inverted(meaning: Clause) -> bool:
    """Return whether a question inverts its subject: a pronoun other than "je", after "où" etc."""
    has_question_word = meaning.question not in ("", "whether", "who")
    return (
        has_question_word and isinstance(meaning.subject, Pronoun) and meaning.subject.word != "I"
    )


def whether(mark: str) -> list[Word]:
    """Render "est-ce que", which keeps the word order of a statement."""
    return [Word("est-ce", (f"{mark}whether",)), Word("que", (f"{mark}whether",))]


def _opening(meaning: Clause, mark: str, inverted: bool) -> list[Word]:
    """Render what precedes the subject: a fronted time, or a question word."""
    if not meaning.question:
        if meaning.time and meaning.fronted:
            return [*adverb(meaning.time.french, f"{mark}time."), Word(",", (f"{mark}comma",))]
        return []
    words = []
    if meaning.question == "which":
        assert isinstance(meaning.object, Nominal)
        words = nominal(meaning.object, f"{mark}object.", clause)
    elif meaning.question != "whether":
        words = [Word(ASKED[meaning.question], (f"{mark}asked",))]
    return words if inverted or meaning.question == "who" else words + whether(mark)


def _complements(meaning: Clause, mark: str) -> list[Word]:
    """Render what follows the verb: object, recipient, companion, place and time."""
    words = _object(meaning, mark)
    if meaning.recipient and not isinstance(meaning.recipient, Pronoun):
        direct = meaning.frame.recipient == "-"  # English calls someone, French calls to someone
        words.append(Word("à", (f"{mark}verb" if direct else f"{mark}recipient.to",)))
        words += after_preposition(meaning.recipient, f"{mark}recipient.", clause)
    if meaning.companion:
        words.append(Word("avec", (f"{mark}with",)))
        words += after_preposition(meaning.companion, f"{mark}companion.", clause)
    if meaning.place:
        words += place(meaning.place, f"{mark}place.", clause)
    if meaning.time and not meaning.fronted:
        words += adverb(meaning.time.french, f"{mark}time.")
    return words


def _object(meaning: Clause, mark: str) -> list[Word]:
    verb, thing = meaning.frame.verb, meaning.object
    if thing is None or isinstance(thing, Pronoun):
        return []
    if meaning.question == "which" or meaning.gap == "object":
        return []
    if isinstance(thing, Name):
        return [Word(thing.name, (f"{mark}object.noun",))]
    never = meaning.often is not None and meaning.often.french[0][0] == "jamais"
    denied = (meaning.negated or never) and not verb.article and not verb.preposition
    of = [Word(verb.preposition, (f"{mark}verb",))] if verb.preposition else []
    return of + nominal(thing, f"{mark}object.", clause, verb.article, denied)
