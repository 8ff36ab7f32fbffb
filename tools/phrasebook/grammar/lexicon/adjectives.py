"""Adjectives: their forms in three languages, and the nouns they may modify."""

from typing import NamedTuple

from grammar.lexicon.nouns import NOUNS, Noun


class Adjective(NamedTuple):
    """An adjective in three languages, and the kinds of noun it may modify."""

    english: str
    comparative: str  # "bigger", "more famous", or "" when it is not compared
    french: tuple[str, ...]  # masculine, feminine, their plurals, and before a vowel "bel"
    before: bool  # it stands before the French noun
    chinese: str
    chinese_predicate: str
    linked: bool  # 的 stands between it and the noun in Chinese
    colour: bool
    kinds: frozenset[str]
    attribute: bool
    predicate: bool

    @property
    def graded(self) -> bool:
        """Return whether "very" may modify it: not a colour, nor "delicious"."""
        return not self.colour and self.english != "delicious"

    def inflect(self, feminine: bool, plural: bool) -> str:
        """Return the French form for a gender and a number."""
        return self.french[feminine + 2 * plural]

    def fits(self, noun: Noun) -> bool:
        """Return whether it may modify a noun."""
        return bool(self.kinds & noun.kinds) or noun.singular in self.kinds


_OWNED = "clothes headwear vehicle furniture thing small instrument"
_COLOURED = "clothes headwear car bicycle boat chair lamp sofa mat box bag cup umbrella ball house"
_SIZED = "furniture thing vehicle opening built town garden park room kitchen tree flower fruit"

# English, comparative | French forms, < when before the noun | Chinese | kinds | its only use
# Chinese: 大 stands bare before the noun, 漂亮的 needs 的, 冷/凉 has another word as a predicate.
_TABLE = f"""
big bigger | < grand grande grands grandes | 大 | {_SIZED} animal
small smaller | < petit petite petits petites | 小 | {_SIZED} prey small
little | < petit petite petits petites | 小 | boy girl pet bird | attribute
beautiful + | < beau belle beaux belles bel | 漂亮的 | clothes furniture vehicle
beautiful + | < beau belle beaux belles bel | 漂亮的 | horse bird plant built town
beautiful + | < beau belle beaux belles bel | 漂亮的 | garden park picture
old older | < vieux vieille vieux vieilles vieil | 旧 | {_OWNED}
old | < vieux vieille vieux vieilles vieil | 老 | adult animal church
new | < nouveau nouvelle nouveaux nouvelles nouvel | 新 | {_OWNED} mate | attribute
new | < nouveau nouvelle nouveaux nouvelles nouvel | 新 | teacher doctor song built | attribute
good | < bon bonne bons bonnes | 好 | worker mate book | attribute
good | < bon bonne bons bonnes | 好 | story song restaurant | attribute
young younger | < jeune jeune jeunes jeunes | 年轻的 | adult
long longer | < long longue longs longues | 长 | long letter story
red | rouge rouge rouges rouges | 红色的 | {_COLOURED} flower
blue | bleu bleue bleus bleues | 蓝色的 | {_COLOURED} flower
green | vert verte verts vertes | 绿色的 | {_COLOURED}
yellow | jaune jaune jaunes jaunes | 黄色的 | {_COLOURED} flower
white | blanc blanche blancs blanches | 白色的 | {_COLOURED} animal flower
black | noir noire noirs noires | 黑色的 | {_COLOURED} pet bird horse
brown | marron marron marron marron | 棕色的 | {_COLOURED} dog horse cow
grey | gris grise gris grises | 灰色的 | {_COLOURED} cat bird mouse
clean cleaner | propre propre propres propres | 干净的 | clothes cleaned cup hotel
dirty dirtier | sale sale sales sales | 脏 | clothes cup bag vehicle ball
cold colder | froid froide froids froides | 冷/凉 | plain brewed soup
hot hotter | chaud chaude chauds chaudes | 热 | brewed soup milk
fresh fresher | frais fraîche frais fraîches | 新鲜的 | fruit egg bread fish milk
delicious | délicieux délicieuse délicieux délicieuses | 好吃的 | food soup
expensive + | cher chère chers chères | 贵 | {_OWNED} meal bottled hotel | predicate
heavy heavier | lourd lourde lourds lourdes | 重 | furniture container piano | predicate
fast faster | rapide rapide rapides rapides | 快 | driven transport horse | predicate
interesting + | intéressant intéressante intéressants intéressantes | 有趣的 | reading visited
kind kinder | < gentil gentille gentils gentilles | 善良的 | adult kin
intelligent + | intelligent intelligente intelligents intelligentes | 聪明的 | person pet
tall taller | grand grande grands grandes | 高 | person | predicate
"""

# how a person feels, and nothing else does
_MOODS = """
tired | fatigué fatiguée fatigués fatiguées | 累 | person | predicate
sad | triste triste tristes tristes | 难过 | person | predicate
happy | heureux heureuse heureux heureuses | 高兴 | person | predicate
busy | occupé occupée occupés occupées | 忙 | person | predicate
angry | fâché fâchée fâchés fâchées | 生气 | person | predicate
"""


def _read(row: str) -> Adjective:
    """Read a row of a table."""
    cells = [cell.split() for cell in row.split("|")]
    (english, *comparative), french, (chinese,), kinds, *use = cells
    compared = comparative[0] if comparative else ""
    bare, _, other = chinese.removesuffix("的").partition("/")
    return Adjective(
        english=english,
        comparative=f"more {english}" if compared == "+" else compared,
        french=tuple(form for form in french if form != "<"),
        before=french[0] == "<",
        chinese=bare,
        chinese_predicate=other or bare,
        linked=chinese.endswith("的"),
        colour=bare.endswith("色"),
        kinds=frozenset(kinds),
        attribute=use != [["predicate"]],
        predicate=use != [["attribute"]],
    )


ADJECTIVES = tuple(_read(row) for row in _TABLE.splitlines() if row)
MOODS = tuple(_read(row) for row in _MOODS.splitlines() if row)

ATTRIBUTES = {
    noun: tuple(word for word in ADJECTIVES if word.attribute and word.fits(noun)) for noun in NOUNS
}
PREDICATES = {
    noun: tuple(word for word in ADJECTIVES if word.predicate and word.fits(noun)) for noun in NOUNS
}


def adjective_names(words: str) -> frozenset[str]:
    """Return a set of adjectives, checked against the lexicon."""
    names = frozenset(words.split())
    assert names <= {word.english for word in ADJECTIVES + MOODS}, names
    return names
