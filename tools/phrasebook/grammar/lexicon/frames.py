"""Frames: the subjects, objects, places and tenses that make sense with each verb."""

from typing import NamedTuple

from grammar.lexicon.nouns import NOUN, Noun, nouns_of
from grammar.lexicon.verbs import VERB, Verb


class Frame(NamedTuple):
    """A verb with the subjects, objects and places that make sense with it."""

    verb: Verb
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    places: tuple[str, ...]  # kinds of place
    tenses: frozenset[str]
    chinese: str
    chinese_object: str  # the second half of a verb that 了 divides, as 舞 in 跳舞
    perfective: bool  # Chinese says 了 in the past
    place_after_verb: bool  # Chinese puts the place after the verb
    durative: str  # 着 where Chinese does not say 正在, or nothing at all
    recipient: str  # what English puts before the one who receives: "to", or "-" for nothing
    any_subject: bool  # pronouns and names may be the subject
    any_object: bool  # pronouns and names may be the object


# the letters of the tenses: simple present, progressive, past, future, modal
TENSES = {"s": "simple", "p": "progressive", "a": "past", "f": "future", "m": "modal"}

# verb | who | what | where | tenses | Chinese
# Chinese: "玩" has no 了 in the past, "住+" has its place behind, "穿~着" lasts.
_ACTIONS = """
eat        | person | food | kitchen restaurant garden | spafm | 吃
eat        | person | soup | kitchen restaurant | spafm | 喝
eat        | cat dog | meat fish bread | kitchen garden | spaf | 吃
eat        | rabbit horse mouse | apple bread | garden | spaf | 吃
drink      | person | drink | kitchen restaurant garden | spafm | 喝
drink      | animal | plain | garden | spaf | 喝
read       | person | reading | desk garden seat | spafm | 读
write      | person | letter told | desk | spafm | 写
buy        | person | food clothes headwear thing small flower drink | shop | spafm | 买
buy        | adult kin | vehicle furniture house instrument | | afm | 买
sell       | farmer | fruit meal egg flower cow horse | shop | spafm | 卖
sell       | adult kin | vehicle furniture instrument house clothes | | afm | 卖
see        | person | animal person | outside landmark | safm | 看见
look at    | person | picture plant animal | garden | spafm | 看
look at    | pet | bird | garden | spaf | 看
listen to  | person | music song story | living seat | spafm | 听
look for   | person | lost small pet | living outside | pm | 找
wait for   | person | bus train mate kin | station landmark | spfm | 等
find       | person | lost small | living outside seat under | af | 找到
like       | person | food drink animal flower music language | | s | 喜欢
love       | person | pet kin music horse flower | | s | 爱
hate       | person | meat fish milk mouse tea | | s | 讨厌
know       | person | adult child | | s | 认识
have       | person | pet vehicle furniture thing tool instrument clothes | | s | 有
have       | adult child | sibling | | s | 有
want       | person | food drink thing clothes headwear pet | | s | 想要
open       | person | opening container | | pafm | 打开
close      | person | opening container | | afm | 关上
wash       | person | clothes vehicle cup fruit dog | garden | spafm | 洗
wear       | person | shirt coat | | spafm | 穿~着
wear       | girl actress sister | dress | | spafm | 穿~着
wear       | person | headwear | | spafm | 戴~着
take       | person | small umbrella bag book ball | | afm | 拿
take       | person | bus train | | spafm | 坐
drive      | adult kin | driven bus | town | spafm | 开
play +     | person | instrument | living garden | spafm | 弹
make       | person | cake soup bread | kitchen | spafm | 做
sing       | person | song | living outside | spafm | 唱
speak      | person | language | desk | sm | 说
understand | person | language | | s | 懂
chase      | cat dog | prey bird rabbit | wild street | spa | 追
help       | person | person | kitchen desk garden | spafm | 帮助
visit      | person | visited | | spafm | 参观
break      | person | brittle window | kitchen | a | 打破
break      | cat dog | brittle | kitchen | a | 打破
lose       | person | lost | spot outside | a | 弄丢
repair     | adult kin | vehicle machine door | | pafm | 修理
sleep      | person | | bed seat | spafm | 睡/觉
sleep      | pet | | surface under landmark | spaf | 睡/觉
sleep      | animal | | wild landmark | spaf | 睡/觉
work       | adult kin | | work | spafm | 工作
live       | person | | town home landmark | s | 住+
sit        | person | | seat landmark | spa | 坐-+~
sit        | pet | | surface under landmark | spa | 坐-+~
play       | child pet | | outside living landmark | spafm | 玩
run        | child pet horse | | wild street landmark | spafm | 跑
dance      | person | | living restaurant outside | spafm | 跳/舞
sing       | person bird | | garden wild | spafm | 唱/歌
cry        | child woman | | living outside | spa | 哭
walk       | person | | outside wild landmark | spafm | 散/步
go         | person | | goal | safm | 去
come       | person | |  | afm | 来
leave      | person | |  | afm | 离开
stay       | person | | spot living | afm | 待-+
fall       | child person | | outside landmark | a | 摔倒
wait       | person | | spot landmark | pfm | 等
"""

# the same with someone who receives; Chinese: 给 stands before that person, 跟 in "说话"
_GIFTS = """
give  | person | thing small fruit flower | | spafm | 给 | to
show  | person | picture thing letter | | spafm | 看 | to
send  | person | letter photo | | spafm | 寄 | to
write | person | letter | desk | spafm | 写 | to
read  | person | told letter | living garden | spafm | 读 | to
talk  | person | | living outside | spafm | 说/话 | to
call  | person | |  | spafm | 打/电话 | -
"""

# what is done with what was bought, made or found: first verb | things | second verb | Chinese
_SEQUELS = """
buy   | fruit cake bread cheese | eat | 吃
buy   | book newspaper | read | 读
buy   | clothes bicycle car fruit | wash | 洗
buy   | car bicycle computer | repair | 修好
buy   | vehicle furniture house instrument | sell | 卖
find  | bag box | open | 打开
find  | hat scarf ball umbrella | wash | 洗
make  | cake bread | sell | 卖
make  | cake | eat | 吃
open  | door window box bag | close | 关上
write | letter | send | 寄走
break | window | repair | 修好
"""


def _read(row: str) -> Frame:
    """Read a row of a table."""
    verb, who, what, where, tenses, chinese, *recipient = (cell.strip() for cell in row.split("|"))
    marked, _, lasting = chinese.partition("~")
    word, _, half = marked.strip("-+").partition("/")
    return Frame(
        verb=VERB[verb],
        subjects=nouns_of(who),
        objects=nouns_of(what),
        places=tuple(where.split()),
        tenses=frozenset(TENSES[letter] for letter in tenses),
        chinese=word,
        chinese_object=half,
        perfective="-" not in marked,
        place_after_verb="+" in marked,
        durative="~" + lasting if "~" in chinese else "",
        recipient=recipient[0] if recipient else "",
        any_subject=_includes_anyone(nouns_of(who)),
        any_object=_includes_anyone(nouns_of(what)),
    )


def _includes_anyone(nouns: tuple[Noun, ...]) -> bool:
    return NOUN["woman"] in nouns and NOUN["mother"] in nouns


ACTIONS = tuple(_read(row) for row in _ACTIONS.splitlines() if row)
GIFTS = tuple(_read(row) for row in _GIFTS.splitlines() if row)


def _sequel(row: str) -> tuple[Frame, Frame]:
    """Read two actions, one after the other, with one object."""
    first, things, second, chinese = (cell.strip() for cell in row.split("|"))
    nouns = nouns_of(things)
    begin = next(frame for frame in ACTIONS if frame.verb == VERB[first])
    end = next(frame for frame in ACTIONS + GIFTS if frame.verb == VERB[second])
    return begin._replace(objects=nouns), end._replace(objects=nouns, chinese=chinese)


SEQUELS = tuple(_sequel(row) for row in _SEQUELS.splitlines() if row)
