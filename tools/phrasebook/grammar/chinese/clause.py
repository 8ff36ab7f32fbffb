"""Chinese clauses: time and place before the verb, aspect after it, no inversion in questions."""

from grammar.chinese.nominal import participant, place
from grammar.lexicon.phrases import OFTEN, Parts
from grammar.meaning import Clause, Nominal, Participant, Pronoun
from grammar.words import Word

MODALS = {"can": "能", "must": "必须", "want": "想", "like": "喜欢"}
DENIED = {"can": ("不", "能"), "must": ("不", "可以"), "want": ("不", "想"), "like": ("不", "喜欢")}
COUNTED = ("two", "three", "four", "five", "six", "ten", "many", "which", "how many")
ADVERBS = {"why": "为什么", "when": "什么时候"}


def adverb(parts: Parts, mark: str) -> list[Word]:
    """Render a fixed phrase; its numbers say which words are aligned."""
    return [Word(word, tuple(mark + number for number in numbers)) for word, numbers in parts]


def clause(meaning: Clause, mark: str = "") -> list[Word]:
    """Render a clause; a relative clause lacks the noun that it modifies."""
    time = adverb(meaning.time.chinese, f"{mark}time.") if meaning.time else []
    subject = _subject(meaning, mark)
    early = meaning.fronted and meaning.tense != "simple"
    words = time + subject if early else subject + time
    if meaning.often:
        words += adverb(meaning.often.chinese, f"{mark}often.")
    if meaning.question in ADVERBS:
        words.append(Word(ADVERBS[meaning.question], (f"{mark}asked",)))
    if meaning.gap != "subject":
        words += every(meaning.subject, f"{mark}subject.")
    words += _auxiliaries(meaning, mark) + _before_verb(meaning, mark) + _verb(meaning, mark)
    words += _after_verb(meaning, mark) + _object(meaning, mark)
    return words + ([Word("吗", (f"{mark}whether",))] if meaning.question == "whether" else [])


def every(who: Participant, mark: str) -> list[Word]:
    """Render 都 after "every" and "all"."""
    universal = isinstance(who, Nominal) and who.determiner in ("every", "all the")
    return [Word("都", (f"{mark}determiner",))] if universal else []


def _subject(meaning: Clause, mark: str) -> list[Word]:
    if meaning.gap == "subject":
        return []
    if meaning.question == "who":
        return [Word("谁", (f"{mark}asked",))]
    return participant(meaning.subject, f"{mark}subject.", clause)


def _auxiliaries(meaning: Clause, mark: str) -> list[Word]:
    """Render negation and auxiliaries."""
    tense, denied = f"{mark}tense", f"{mark}not"
    if meaning.tense == "modal":
        words = DENIED[meaning.modal] if meaning.negated else (MODALS[meaning.modal],)
        modal = Word(words[-1], (f"{mark}modal",))
        return [Word(words[0], (denied,)), modal] if meaning.negated else [modal]
    no = [Word("没有" if meaning.tense == "past" else "不", (denied,))] if meaning.negated else []
    if meaning.tense == "future":
        return [*no, Word("会", (tense,))]
    if meaning.tense == "going":
        return [Word("要", (tense,))]
    if meaning.tense == "progressive" and not meaning.frame.durative:
        return [Word("正在", (tense, f"{mark}place.preposition"))]
    return [] if meaning.frame.chinese == "有" else no


def _before_verb(meaning: Clause, mark: str) -> list[Word]:
    """Render place, companion and recipient, which precede the verb."""
    words: list[Word] = []
    if not meaning.frame.place_after_verb and meaning.frame.verb.base != "go":
        # 正在 takes the 在 of the place into itself
        merged = meaning.tense == "progressive" and not meaning.frame.durative
        words += _where(meaning, mark, merged)
    if meaning.companion:
        words.append(Word("跟", (f"{mark}with",)))
        words += participant(meaning.companion, f"{mark}companion.", clause)
        words.append(Word("一起", (f"{mark}with",)))
    if _is_object_before_verb(meaning):
        words.append(Word("把", (f"{mark}verb",)))
        words += _thing(meaning, mark)
    if meaning.recipient and meaning.frame.chinese != "给":
        words += _recipient(meaning.recipient, meaning, mark)
    return words


def _is_object_before_verb(meaning: Clause) -> bool:
    """Return whether 把 puts the object before the verb: a definite object of 给."""
    thing = meaning.object
    if meaning.frame.chinese != "给" or not isinstance(thing, Nominal):
        return False
    return meaning.gap != "object" and thing.determiner not in ("a", "some", "any", "", *COUNTED)


def _where(meaning: Clause, mark: str, merged: bool) -> list[Word]:
    asked = f"{mark}asked"
    at = [] if merged else [Word("在", (f"{mark}place.preposition", asked))]
    if meaning.question == "where":
        return [*at, Word("哪里", (asked,))]
    return [*at, *place(meaning.place, f"{mark}place.", clause)] if meaning.place else []


def _recipient(who: Participant, meaning: Clause, mark: str) -> list[Word]:
    """Render the recipient; 给 is a part of the verb where English has no "to"."""
    named = meaning.frame.recipient == "-" or (isinstance(who, Pronoun) and meaning.object)
    marks = (f"{mark}verb",) if named else (f"{mark}recipient.to",)
    word = "跟" if meaning.frame.chinese == "说" else "给"
    return [Word(word, marks), *participant(who, f"{mark}recipient.", clause)]


def _verb(meaning: Clause, mark: str) -> list[Word]:
    frame, action, tense = meaning.frame, f"{mark}verb", (f"{mark}tense",)
    if meaning.negated and frame.chinese == "有":
        return [Word("没有", (action, f"{mark}not"))]
    # 给 and 去 hold the "to" of English
    marks: tuple[str, ...] = (action, *_towards(meaning, mark))
    word = frame.chinese
    if meaning.tense == "progressive" and frame.durative:
        word += frame.durative[1:]
        marks += tense
    if meaning.tense == "simple":
        marks += tense
    aspect = _aspect(meaning)
    if not aspect:
        return [Word(word + frame.chinese_object, marks)]
    halves = [Word(frame.chinese_object, marks)] if frame.chinese_object else []
    return [Word(word, marks), Word(aspect, tense), *halves]


def _towards(meaning: Clause, mark: str) -> tuple[str, ...]:
    if meaning.frame.chinese == "去":
        return (f"{mark}place.preposition",)
    return (f"{mark}recipient.to",) if meaning.frame.chinese == "给" else ()


def _aspect(meaning: Clause) -> str:
    """Return the aspect particle: 了 for the past, 的 if its time or place is asked for."""
    if meaning.tense != "past" or meaning.negated or meaning.gap == "object":
        return ""
    is_time_or_place_question = meaning.question == "when" or (
        meaning.question == "where" and not meaning.frame.place_after_verb
    )
    if (
        is_time_or_place_question
        and not meaning.frame.place_after_verb
        and meaning.frame.chinese not in ("给", "去")
    ):
        return "的"
    return "了" if meaning.frame.perfective else ""


def _after_verb(meaning: Clause, mark: str) -> list[Word]:
    """Render the place of "live" and "go", which follows the verb."""
    if meaning.frame.verb.base == "go":
        return _where(meaning, mark, merged=True)
    words = _where(meaning, mark, merged=False) if meaning.frame.place_after_verb else []
    if meaning.recipient and meaning.frame.chinese == "给":
        words += participant(meaning.recipient, f"{mark}recipient.", clause)
    return words


def _object(meaning: Clause, mark: str) -> list[Word]:
    if meaning.question == "what":
        return [Word("什么", (f"{mark}asked",))]
    if meaning.object is None or meaning.gap == "object" or _is_object_before_verb(meaning):
        return []
    return _thing(meaning, mark)


def _thing(meaning: Clause, mark: str) -> list[Word]:
    assert meaning.object
    unsure = meaning.negated or meaning.often == OFTEN["never"] or _aspect(meaning) == "的"
    return participant(meaning.object, f"{mark}object.", clause, indefinite=not unsure)
