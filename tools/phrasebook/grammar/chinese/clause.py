"""Chinese clauses: time and place before the verb, aspect behind it, questions in place."""

from grammar.chinese.nominal import participant, place
from grammar.lexicon.phrases import OFTEN, Parts
from grammar.meaning import Clause, Nominal, Participant, Pronoun
from grammar.words import Word

MODALS = {"can": "能", "must": "必须", "want": "想", "like": "喜欢"}
DENIED = {"can": ("不", "能"), "must": ("不", "可以"), "want": ("不", "想"), "like": ("不", "喜欢")}
COUNTED = ("two", "three", "four", "five", "six", "ten", "many", "which", "how many")
ADVERBS = {"why": "为什么", "when": "什么时候"}


def adverb(parts: Parts, mark: str) -> list[Word]:
    """Say a set phrase; its numbers say which words are counterparts."""
    return [Word(word, tuple(mark + number for number in numbers)) for word, numbers in parts]


def clause(told: Clause, mark: str = "") -> list[Word]:
    """Say a clause; in a relative clause without the word it stands by."""
    time = adverb(told.time.chinese, f"{mark}time.") if told.time else []
    subject = _subject(told, mark)
    early = told.fronted and told.tense != "simple"
    words = time + subject if early else subject + time
    if told.often:
        words += adverb(told.often.chinese, f"{mark}often.")
    if told.question in ADVERBS:
        words.append(Word(ADVERBS[told.question], (f"{mark}asked",)))
    if told.gap != "subject":
        words += every(told.subject, f"{mark}subject.")
    words += _auxiliaries(told, mark) + _before(told, mark) + _verb(told, mark)
    words += _behind(told, mark) + _object(told, mark)
    return words + ([Word("吗", (f"{mark}whether",))] if told.question == "whether" else [])


def every(who: Participant, mark: str) -> list[Word]:
    """Say 都 after "every" and "all"."""
    universal = isinstance(who, Nominal) and who.determiner in ("every", "all the")
    return [Word("都", (f"{mark}determiner",))] if universal else []


def _subject(told: Clause, mark: str) -> list[Word]:
    if told.gap == "subject":
        return []
    if told.question == "who":
        return [Word("谁", (f"{mark}asked",))]
    return participant(told.subject, f"{mark}subject.", clause)


def _auxiliaries(told: Clause, mark: str) -> list[Word]:
    """Say the negation and what comes before the verb of a tense."""
    tense, denied = f"{mark}tense", f"{mark}not"
    if told.tense == "modal":
        words = DENIED[told.modal] if told.negated else (MODALS[told.modal],)
        modal = Word(words[-1], (f"{mark}modal",))
        return [Word(words[0], (denied,)), modal] if told.negated else [modal]
    no = [Word("没有" if told.tense == "past" else "不", (denied,))] if told.negated else []
    if told.tense == "future":
        return [*no, Word("会", (tense,))]
    if told.tense == "going":
        return [Word("要", (tense,))]
    if told.tense == "progressive" and not told.frame.lasting:
        return [Word("正在", (tense, f"{mark}place.preposition"))]
    return [] if told.frame.chinese == "有" else no


def _before(told: Clause, mark: str) -> list[Word]:
    """Say where, with whom and for whom, all of which stand before the verb."""
    words: list[Word] = []
    if not told.frame.placed and told.frame.verb.base != "go":
        # 正在 takes the 在 of the place into itself
        merged = told.tense == "progressive" and not told.frame.lasting
        words += _where(told, mark, merged)
    if told.companion:
        words.append(Word("跟", (f"{mark}with",)))
        words += participant(told.companion, f"{mark}companion.", clause)
        words.append(Word("一起", (f"{mark}with",)))
    if _handed(told):
        words.append(Word("把", (f"{mark}verb",)))
        words += _thing(told, mark)
    if told.recipient and told.frame.chinese != "给":
        words += _recipient(told.recipient, told, mark)
    return words


def _handed(told: Clause) -> bool:
    """What is given stands before the verb when the listener knows it."""
    thing = told.object
    if told.frame.chinese != "给" or not isinstance(thing, Nominal):
        return False
    return told.gap != "object" and thing.determiner not in ("a", "some", "any", "", *COUNTED)


def _where(told: Clause, mark: str, merged: bool) -> list[Word]:
    asked = f"{mark}asked"
    at = [] if merged else [Word("在", (f"{mark}place.preposition", asked))]
    if told.question == "where":
        return [*at, Word("哪里", (asked,))]
    return [*at, *place(told.place, f"{mark}place.", clause)] if told.place else []


def _recipient(who: Participant, told: Clause, mark: str) -> list[Word]:
    """Say for whom; 给 is a part of the verb where English has no "to"."""
    named = told.frame.recipient == "-" or (isinstance(who, Pronoun) and told.object)
    marks = (f"{mark}verb",) if named else (f"{mark}recipient.to",)
    word = "跟" if told.frame.chinese == "说" else "给"
    return [Word(word, marks), *participant(who, f"{mark}recipient.", clause)]


def _verb(told: Clause, mark: str) -> list[Word]:
    frame, action, tense = told.frame, f"{mark}verb", (f"{mark}tense",)
    if told.negated and frame.chinese == "有":
        return [Word("没有", (action, f"{mark}not"))]
    # 给 and 去 hold the "to" of English
    marks: tuple[str, ...] = (action, *_towards(told, mark))
    word = frame.chinese
    if told.tense == "progressive" and frame.lasting:
        word += frame.lasting[1:]
        marks += tense
    if told.tense == "simple":
        marks += tense
    aspect = _aspect(told)
    if not aspect:
        return [Word(word + frame.chinese_object, marks)]
    halves = [Word(frame.chinese_object, marks)] if frame.chinese_object else []
    return [Word(word, marks), Word(aspect, tense), *halves]


def _towards(told: Clause, mark: str) -> tuple[str, ...]:
    if told.frame.chinese == "去":
        return (f"{mark}place.preposition",)
    return (f"{mark}recipient.to",) if told.frame.chinese == "给" else ()


def _aspect(told: Clause) -> str:
    """Choose 了 for what was done, and 的 when its time or place is asked for."""
    if told.tense != "past" or told.negated or told.gap == "object":
        return ""
    asked = told.question == "when" or (told.question == "where" and not told.frame.placed)
    if asked and not told.frame.placed and told.frame.chinese not in ("给", "去"):
        return "的"
    return "了" if told.frame.finished else ""


def _behind(told: Clause, mark: str) -> list[Word]:
    """Say the place of "live" and "go", which stands behind the verb."""
    if told.frame.verb.base == "go":
        return _where(told, mark, merged=True)
    words = _where(told, mark, merged=False) if told.frame.placed else []
    if told.recipient and told.frame.chinese == "给":
        words += participant(told.recipient, f"{mark}recipient.", clause)
    return words


def _object(told: Clause, mark: str) -> list[Word]:
    if told.question == "what":
        return [Word("什么", (f"{mark}asked",))]
    if told.object is None or told.gap == "object" or _handed(told):
        return []
    return _thing(told, mark)


def _thing(told: Clause, mark: str) -> list[Word]:
    assert told.object
    unsure = told.negated or told.often == OFTEN["never"] or _aspect(told) == "的"
    return participant(told.object, f"{mark}object.", clause, indefinite=not unsure)
