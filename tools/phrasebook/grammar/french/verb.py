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
    """The verbs of a clause: the one with a person, and an infinitive or participle."""

    finite: Word
    rest: list[Word]


def predicate(told: Clause, mark: str, inverted: bool = False) -> list[Word]:
    """Say the verbs with all that clings to them: "ne les a pas souvent vus"."""
    group, clitics = _group(told, mark), _clitics(told, mark)
    on_infinitive = told.tense in ("going", "modal")
    words = [Word(word, (f"{mark}not",)) for word in _negation(told)[:1]]
    if told.often and told.often.french[0][0] == "jamais":
        words = [Word("ne", (f"{mark}often.1",))]
    words += [*([] if on_infinitive else clitics), group.finite]
    if inverted:
        words.append(turned(told.subject, group.finite.text, f"{mark}subject."))
    words += [Word(word, (f"{mark}not",)) for word in _negation(told)[1:]]
    if told.often:
        words += [Word(word, (f"{mark}often.{n}",)) for word, n in told.often.french]
    return words + (clitics if on_infinitive else []) + group.rest


def turned(subject: Participant, verb: str, mark: str) -> Word:
    """Say a pronoun behind its verb: "vas-tu", "habite-t-elle"."""
    pronoun = subject_pronoun(subject)
    joint = "-t-" if verb[-1] in "ae" and person(subject) == 2 else "-"
    return Word(joint + pronoun, (f"{mark}noun",))


def agreeing(participle: str, who: Participant) -> str:
    """Give a participle the gender and number of what it agrees with."""
    form = participle + ("e" if is_feminine(who) else "")
    return form + ("s" if is_plural(who) and form[-1] != "s" else "")


def _negation(told: Clause) -> tuple[str, ...]:
    return ("ne", "pas") if told.negated else ()


def _clitics(told: Clause, mark: str) -> list[Word]:
    """Say the pronouns that stand before the verb."""
    found = []
    if isinstance(told.object, Pronoun) and told.question != "what" and told.gap != "object":
        who = person(told.object)
        feminine = who == 2 and is_feminine(told.object)
        found.append(Word("la" if feminine else DIRECT[who], (f"{mark}object.noun",)))
    if isinstance(told.recipient, Pronoun):
        marks = (f"{mark}recipient.noun", f"{mark}recipient.to")
        found.append(Word(INDIRECT[person(told.recipient)], marks))
    return found


def _group(told: Clause, mark: str) -> Group:
    """Choose the verbs of a tense."""
    verb, who = told.frame.verb, person(told.subject)
    action, tense = f"{mark}verb", f"{mark}tense"
    if told.tense in ("going", "modal"):
        first = GO if told.tense == "going" else VERB[told.modal].present
        marks = (tense if told.tense == "going" else f"{mark}modal",)
        return Group(Word(first[who], marks), [Word(verb.infinitive, (action,))])
    if verb.base == "sit":
        return _sitting(told, mark)
    if told.tense == "past":
        return _past(told, mark)
    form = verb.future + WILL[who] if told.tense == "future" else verb.present[who]
    return Group(Word(form, (action, tense)), [])


def _sitting(told: Clause, mark: str) -> Group:
    """Say that someone is seated, for French has no verb for it."""
    forms = WAS if told.tense == "past" else BE
    seated = Word(agreeing("assis", told.subject), (f"{mark}verb",))
    return Group(Word(forms[person(told.subject)], (f"{mark}tense",)), [seated])


def _past(told: Clause, mark: str) -> Group:
    verb, who = told.frame.verb, person(told.subject)
    participle = verb.participle
    if verb.with_be:
        participle = agreeing(participle, told.subject)
    elif told.object and _object_precedes(told):
        participle = agreeing(participle, told.object)
    helper = (BE if verb.with_be else HAVE)[who]
    return Group(Word(helper, (f"{mark}tense",)), [Word(participle, (f"{mark}verb",))])


def _object_precedes(told: Clause) -> bool:
    """The participle agrees with an object that was said before it."""
    asked = told.question == "which" or told.gap == "object"
    return asked or (isinstance(told.object, Pronoun) and told.question != "what")
