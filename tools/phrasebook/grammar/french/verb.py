"""French verbs in their tenses, with agreement, clitics and negation."""

from typing import NamedTuple

from grammar.french.nominal import subject_pronoun
from grammar.lexicon.verbs import VERB
from grammar.meaning import (
    Clause,
    Participant,
    Pronoun,
    is_feminine,
    is_plural,
    person,
)
from grammar.words import Word

HAVE, BE, GO = VERB["have"].present, VERB["be"].present, VERB["go"].present
WAS = ("étais", "étais", "était", "étions", "étaient")
WILL = ("ai", "as", "a", "ons", "ont")
DIRECT = ("me", "te", "le", "nous", "les")
INDIRECT = ("me", "te", "lui", "nous", "leur")


class Group(NamedTuple):
    """The verbs of a clause: the finite one, and an infinitive or participle."""

    finite: Word
    rest: list[Word]


def predicate(meaning: Clause, mark: str, inverted: bool = False) -> list[Word]:
    """Render the verbs with negation, clitics and adverbs: "ne les a pas souvent vus"."""
    group, clitics = _group(meaning, mark), _clitics(meaning, mark)
    on_infinitive = meaning.tense in ("going", "modal")
    words = [Word(word, (f"{mark}not",)) for word in _negation(meaning)[:1]]
    if meaning.often and meaning.often.french[0][0] == "jamais":
        words = [Word("ne", (f"{mark}often.1",))]
    words += [*([] if on_infinitive else clitics), group.finite]
    if inverted:
        words.append(inverted_pronoun(meaning.subject, group.finite.text, f"{mark}subject."))
    words += [Word(word, (f"{mark}not",)) for word in _negation(meaning)[1:]]
    if meaning.often:
        words += [Word(word, (f"{mark}often.{n}",)) for word, n in meaning.often.french]
    return words + (clitics if on_infinitive else []) + group.rest


def inverted_pronoun(subject: Participant, verb: str, mark: str) -> Word:
    """Render a pronoun inverted behind its verb: "vas-tu", "habite-t-elle"."""
    pronoun = subject_pronoun(subject)
    joint = "-t-" if verb[-1] in "ae" and person(subject) == 2 else "-"
    return Word(joint + pronoun, (f"{mark}noun",))


def agree(participle: str, who: Participant) -> str:
    """Inflect a participle for the gender and number of what it agrees with."""
    form = participle + ("e" if is_feminine(who) else "")
    return form + ("s" if is_plural(who) and form[-1] != "s" else "")


def _negation(meaning: Clause) -> tuple[str, ...]:
    return ("ne", "pas") if meaning.negated else ()


def _clitics(meaning: Clause, mark: str) -> list[Word]:
    """Render the object pronouns before the verb."""
    clitics = []
    if (
        isinstance(meaning.object, Pronoun)
        and meaning.question != "what"
        and meaning.gap != "object"
    ):
        who = person(meaning.object)
        feminine = who == 2 and is_feminine(meaning.object)
        clitics.append(Word("la" if feminine else DIRECT[who], (f"{mark}object.noun",)))
    if isinstance(meaning.recipient, Pronoun):
        marks = (f"{mark}recipient.noun", f"{mark}recipient.to")
        clitics.append(Word(INDIRECT[person(meaning.recipient)], marks))
    return clitics


def _group(meaning: Clause, mark: str) -> Group:
    """Return the verbs of a tense."""
    verb, who = meaning.frame.verb, person(meaning.subject)
    action, tense = f"{mark}verb", f"{mark}tense"
    if meaning.tense in ("going", "modal"):
        first = GO if meaning.tense == "going" else VERB[meaning.modal].present
        marks = (tense if meaning.tense == "going" else f"{mark}modal",)
        return Group(Word(first[who], marks), [Word(verb.infinitive, (action,))])
    if verb.base == "sit":
        return _seated(meaning, mark)
    if meaning.tense == "past":
        return _past(meaning, mark)
    form = verb.future + WILL[who] if meaning.tense == "future" else verb.present[who]
    return Group(Word(form, (action, tense)), [])


def _seated(meaning: Clause, mark: str) -> Group:
    """Return "être assis": French has no verb for sitting."""
    forms = WAS if meaning.tense == "past" else BE
    seated = Word(agree("assis", meaning.subject), (f"{mark}verb",))
    return Group(Word(forms[person(meaning.subject)], (f"{mark}tense",)), [seated])


def _past(meaning: Clause, mark: str) -> Group:
    verb, who = meaning.frame.verb, person(meaning.subject)
    participle = verb.participle
    if verb.with_be:
        participle = agree(participle, meaning.subject)
    elif meaning.object and _object_precedes(meaning):
        participle = agree(participle, meaning.object)
    helper = (BE if verb.with_be else HAVE)[who]
    return Group(Word(helper, (f"{mark}tense",)), [Word(participle, (f"{mark}verb",))])


def _object_precedes(meaning: Clause) -> bool:
    """Return whether the object precedes the participle, which then agrees with it."""
    precedes = meaning.question == "which" or meaning.gap == "object"
    return precedes or (isinstance(meaning.object, Pronoun) and meaning.question != "what")
