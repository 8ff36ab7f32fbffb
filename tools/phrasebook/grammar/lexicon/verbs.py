"""Verbs: their forms in English and French."""

from typing import NamedTuple


class Verb(NamedTuple):
    """A verb in English and French; its Chinese depends on the frame."""

    base: str
    third: str
    past: str
    progressive: str
    particle: str  # "at" in "look at"
    infinitive: str
    participle: str
    present: tuple[str, ...]  # of je, tu, il, nous, ils
    future: str  # the stem before -ai, -as, -a, -ons, -ont
    with_be: bool  # the French past is made with être
    preposition: str  # what French puts before the object: "jouer du piano"
    article: str  # what French says of things in general: "aimer le thé", "parler - français"


# English forms, particle | French: infinitive, participle, present, future stem
# An infinitive alone is a regular verb in -er; a stem "-" is the infinitive without its e;
# *être, *de, *le and *- are marks.
_TABLE = """
eat eats ate eating            | manger mangé mange manges mange mangeons mangent manger
drink drinks drank drinking    | boire bu bois bois boit buvons boivent boir
read reads read reading        | lire lu lis lis lit lisons lisent lir
write writes wrote writing     | écrire écrit écris écris écrit écrivons écrivent écrir
buy buys bought buying         | acheter acheté achète achètes achète achetons achètent achèter
sell sells sold selling        | vendre vendu vends vends vend vendons vendent vendr
see sees saw seeing            | voir vu vois vois voit voyons voient verr
look looks looked looking at   | regarder
look looks looked looking for  | chercher
listen listens listened listening to | écouter
wait waits waited waiting for  | attendre attendu attends attends attend attendons attendent attendr
wait waits waited waiting      | attendre attendu attends attends attend attendons attendent attendr
find finds found finding       | trouver
like likes liked liking        | aimer *le
love loves loved loving        | adorer *le
hate hates hated hating        | détester *le
know knows knew knowing        | connaître connu connais connais connaît connaissons connaissent -
have has had having            | avoir eu ai as a avons ont aur
want wants wanted wanting      | vouloir voulu veux veux veut voulons veulent voudr
open opens opened opening      | ouvrir ouvert ouvre ouvres ouvre ouvrons ouvrent ouvrir
close closes closed closing    | fermer
wash washes washed washing     | laver
wear wears wore wearing        | porter
take takes took taking         | prendre pris prends prends prend prenons prennent prendr
drive drives drove driving | conduire conduit conduis conduis conduit conduisons conduisent conduir
play plays played playing      | jouer
play plays played playing +    | jouer *de
make makes made making         | faire fait fais fais fait faisons font fer
sing sings sang singing        | chanter
speak speaks spoke speaking    | parler *-
understand understands understood - | comprendre compris comprends comprends comprend comprenons \
comprennent - *le
chase chases chased chasing    | poursuivre poursuivi poursuis poursuis poursuit poursuivons \
poursuivent poursuivr
help helps helped helping      | aider
visit visits visited visiting  | visiter
break breaks broke breaking    | casser
lose loses lost losing         | perdre perdu perds perds perd perdons perdent perdr
repair repairs repaired repairing | réparer
sleep sleeps slept sleeping    | dormir dormi dors dors dort dormons dorment dormir
work works worked working      | travailler
live lives lived living        | habiter
sit sits sat sitting           | être assis suis es est sommes sont ser
run runs ran running           | courir couru cours cours court courons courent courr
dance dances danced dancing    | danser
cry cries cried crying         | pleurer
walk walks walked walking      | marcher
go goes went going             | aller allé vais vas va allons vont ir *être
come comes came coming         | venir venu viens viens vient venons viennent viendr *être
leave leaves left leaving      | partir parti pars pars part partons partent partir *être
stay stays stayed staying      | rester *être
fall falls fell falling        | tomber *être
give gives gave giving         | donner
show shows showed showing      | montrer
send sends sent sending        | envoyer envoyé envoie envoies envoie envoyons envoient enverr
talk talks talked talking      | parler
call calls called calling      | téléphoner
think thinks thought thinking  | penser
know knows knew knowing that   | savoir su sais sais sait savons savent saur
say says said saying           | dire dit dis dis dit disons disent dir
hope hopes hoped hoping        | espérer espéré espère espères espère espérons espèrent espérer
be is was being                | être été suis es est sommes sont ser
can can could -                | pouvoir pu peux peux peut pouvons peuvent pourr
must must - -                  | devoir dû dois dois doit devons doivent devr
"""


def _read(row: str) -> Verb:
    """Read a row of the table."""
    english, french = (cell.split() for cell in row.split("|"))
    forms = [form for form in french if form[0] != "*"]
    marks = {form[1:] for form in french if form[0] == "*"}
    infinitive, participle, *present, future = forms if len(forms) > 1 else _regular(forms[0])
    base, third, past, progressive, *particle = english
    return Verb(
        base=base,
        third=third,
        past=past,
        progressive=progressive,
        particle=particle[0] if particle else "",
        infinitive=infinitive,
        participle=participle,
        present=tuple(present),
        future=infinitive.removesuffix("e") if future == "-" else future,
        with_be="être" in marks,
        preposition="de" if "de" in marks else "",
        article=next(iter(marks & {"le", "-"}), ""),
    )


def _regular(infinitive: str) -> list[str]:
    """Conjugate a regular French verb in -er."""
    stem = infinitive.removesuffix("er")
    endings = ("er", "é", "e", "es", "e", "ons", "ent", "er")
    return [stem + ending for ending in endings]


VERBS = tuple(_read(row) for row in _TABLE.splitlines() if row)
VERB = {f"{verb.base} {verb.particle}".strip(): verb for verb in VERBS}


def verb_bases(words: str) -> frozenset[str]:
    """Return a set of verbs, checked against the lexicon."""
    names = frozenset(words.split())
    assert names <= {verb.base for verb in VERBS}, names
    return names
