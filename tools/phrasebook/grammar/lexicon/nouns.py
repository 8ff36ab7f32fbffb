"""Nouns and names: forms, gender, measure words and semantic kinds."""

from typing import NamedTuple


class Noun(NamedTuple):
    """A noun in three languages, and its semantic kinds."""

    singular: str
    plural: str  # "" for what is not counted, such as water
    french: str
    french_plural: str
    feminine: bool
    chinese: str
    measure: str  # the word between a number and the noun in Chinese
    kinds: frozenset[str]
    pronoun: str  # what stands for one of them in English

    @property
    def countable(self) -> bool:
        """Return whether it has a plural."""
        return self.plural != ""


class Name(NamedTuple):
    """A person's name, the same in English and French."""

    name: str
    chinese: str
    pronoun: str


# singular plural | French singular, plural, gender | Chinese, measure word | kinds
_COUNTED = """
man men            | homme hommes m              | 男人 个    | person adult
woman women        | femme femmes f              | 女人 个    | person adult she
boy boys           | garçon garçons m            | 男孩 个    | person child
girl girls         | fille filles f              | 女孩 个    | person child she
child children     | enfant enfants m            | 孩子 个    | person child
teacher teachers   | professeur professeurs m    | 老师 个    | person adult worker
doctor doctors     | médecin médecins m          | 医生 个    | person adult worker
student students   | étudiant étudiants m        | 学生 个    | person adult worker
farmer farmers     | fermier fermiers m          | 农民 个    | person adult worker
actress actresses  | actrice actrices f          | 女演员 个  | person adult she
friend friends     | ami amis m                  | 朋友 个    | person adult mate
neighbour neighbours | voisin voisins m          | 邻居 个    | person adult mate
mother mothers     | mère mères f                | 妈妈 个    | person kin she
father fathers     | père pères m                | 爸爸 个    | person kin
brother brothers   | frère frères m              | 哥哥 个    | person kin sibling
sister sisters     | sœur sœurs f                | 姐姐 个    | person kin sibling she
grandmother grandmothers | grand-mère grands-mères f | 奶奶 个 | person kin she
cat cats           | chat chats m                | 猫 只      | animal pet
dog dogs           | chien chiens m              | 狗 只      | animal pet
rabbit rabbits     | lapin lapins m              | 兔子 只    | animal pet
bird birds         | oiseau oiseaux m            | 鸟 只      | animal
horse horses       | cheval chevaux m            | 马 匹      | animal big
cow cows           | vache vaches f              | 牛 头      | animal big
mouse mice         | souris souris f             | 老鼠 只    | animal prey
apple apples       | pomme pommes f              | 苹果 个    | food fruit
orange oranges     | orange oranges f            | 橙子 个    | food fruit
tomato tomatoes    | tomate tomates f            | 西红柿 个  | food fruit
egg eggs           | œuf œufs m                  | 鸡蛋 个    | food egg
cake cakes         | gâteau gâteaux m            | 蛋糕 个    | food baked
book books         | livre livres m              | 书 本      | reading thing told
newspaper newspapers | journal journaux m         | 报纸 份    | reading
letter letters     | lettre lettres f            | 信 封      | reading letter
story stories      | histoire histoires f        | 故事 个    | reading told tale
shirt shirts       | chemise chemises f          | 衬衫 件    | clothes
coat coats         | manteau manteaux m          | 大衣 件    | clothes warm
dress dresses      | robe robes f                | 连衣裙 条  | clothes long
hat hats           | chapeau chapeaux m          | 帽子 顶    | headwear
scarf scarves      | écharpe écharpes f          | 围巾 条    | headwear warm long
table tables       | table tables f              | 桌子 张    | furniture surface round
chair chairs       | chaise chaises f            | 椅子 把    | furniture surface
bed beds           | lit lits m                  | 床 张      | furniture surface
mat mats           | tapis tapis m               | 垫子 张    | furniture mat round
door doors         | porte portes f              | 门 扇      | opening landmark
window windows     | fenêtre fenêtres f          | 窗户 扇    | opening landmark
box boxes          | boîte boîtes f              | 盒子 个    | thing container
bag bags           | sac sacs m                  | 包 个      | thing container lost
cup cups           | tasse tasses f              | 杯子 个    | thing vessel brittle
bottle bottles     | bouteille bouteilles f      | 瓶子 个    | thing vessel brittle
key keys           | clé clés f                  | 钥匙 把    | small lost
umbrella umbrellas | parapluie parapluies m      | 雨伞 把    | thing lost tool
phone phones       | téléphone téléphones m      | 手机 部    | small lost tool machine
computer computers | ordinateur ordinateurs m    | 电脑 台    | thing tool machine
photo photos       | photo photos f              | 照片 张    | picture small
ball balls         | ballon ballons m            | 球 个      | thing
flower flowers     | fleur fleurs f              | 花 朵      | plant
tree trees         | arbre arbres m              | 树 棵      | plant landmark
car cars           | voiture voitures f          | 汽车 辆    | vehicle driven
bicycle bicycles   | vélo vélos m                | 自行车 辆  | vehicle
bus buses          | autobus autobus m           | 公共汽车 辆 | transport
train trains       | train trains m              | 火车 列    | transport
piano pianos       | piano pianos m              | 钢琴 架    | instrument
guitar guitars     | guitare guitares f          | 吉他 把    | instrument
song songs         | chanson chansons f          | 歌 首      | song
house houses       | maison maisons f            | 房子 座    | indoors home landmark built
kitchen kitchens   | cuisine cuisines f          | 厨房 个    | indoors cleaned
room rooms         | chambre chambres f          | 房间 个    | indoors cleaned calm
restaurant restaurants | restaurant restaurants m | 饭馆 家   | indoors spot built
shop shops         | magasin magasins m          | 商店 家    | indoors built
hotel hotels       | hôtel hôtels m              | 宾馆 家    | spot built
hospital hospitals | hôpital hôpitaux m          | 医院 家    | spot built
school schools     | école écoles f              | 学校 所    | spot study built
station stations   | gare gares f                | 车站 个    | spot landmark built
market markets     | marché marchés m            | 市场 个    | spot
beach beaches      | plage plages f              | 海滩 片    | spot play
garden gardens     | jardin jardins m            | 花园 个    | outside play calm
park parks         | parc parcs m                | 公园 个    | outside play calm spot
forest forests     | forêt forêts f              | 森林 片    | outside
city cities        | ville villes f              | 城市 座    | town visited
street streets     | rue rues f                  | 街 条      | outside play calm
church churches    | église églises f            | 教堂 座    | landmark visited built
river rivers       | rivière rivières f          | 河 条      | landmark
"""

# the same without a plural
_UNCOUNTED = """
bread   | pain m     | 面包   | food meal baked
cheese  | fromage m  | 奶酪   | food meal
meat    | viande f   | 肉     | food meal
fish    | poisson m  | 鱼     | food meal
soup    | soupe f    | 汤     | soup
water   | eau f      | 水     | drink plain glass
milk    | lait m     | 牛奶   | drink plain glass
coffee  | café m     | 咖啡   | drink brewed
tea     | thé m      | 茶     | drink brewed
wine    | vin m      | 葡萄酒 | drink glass bottled
music   | musique f  | 音乐   | music
French  | français m | 法语   | language
English | anglais m  | 英语   | language
Chinese | chinois m  | 中文   | language
"""

NAMES = (
    Name("Marie", "玛丽", "she"),
    Name("Anna", "安娜", "she"),
    Name("Julie", "朱莉", "she"),
    Name("Paul", "保罗", "he"),
    Name("Thomas", "托马斯", "he"),
    Name("Daniel", "丹尼尔", "he"),
)

# professions said of a woman in French
FEMININE = {
    "teacher": "professeure",
    "doctor": "médecin",
    "student": "étudiante",
    "farmer": "fermière",
}


def _pronoun(kinds: set[str]) -> str:
    if "she" in kinds:
        return "she"
    return "he" if "person" in kinds else "it"


def _read(row: str) -> Noun:
    """Read a row of a table; a noun with one form in English is uncountable."""
    english, french, chinese, kinds = (cell.split() for cell in row.split("|"))
    return Noun(
        singular=english[0],
        plural=english[1] if len(english) > 1 else "",
        french=french[0],
        french_plural=french[-2],
        feminine=french[-1] == "f",
        chinese=chinese[0],
        measure=chinese[1] if len(chinese) > 1 else "",
        kinds=frozenset(kinds) - {"she"},
        pronoun=_pronoun(set(kinds)),
    )


# what uncounted things come in: English | French | Chinese, measure word | kinds they hold
_PORTIONS = """
cup cups       | tasse tasses f         | 杯 杯 | brewed
glass glasses  | verre verres m         | 杯 杯 | glass
bottle bottles | bouteille bouteilles f | 瓶 瓶 | bottled
piece pieces   | morceau morceaux m     | 块 块 | bread cheese meat chocolate
"""

PORTIONS = tuple(_read(row) for row in _PORTIONS.splitlines() if row)
NOUNS = tuple(_read(row) for row in (_COUNTED + _UNCOUNTED).splitlines() if row)
NOUN = {noun.singular: noun for noun in NOUNS}


def nouns_of(kinds: str) -> tuple[Noun, ...]:
    """Return the nouns of any of some kinds, or with one of these names."""
    wanted = set(kinds.split())
    return tuple(noun for noun in NOUNS if noun.kinds & wanted or noun.singular in wanted)
