import json
import subprocess
import sys

import pytest

from regard.data import train_tokenizer
from regard.data.tokenizer import FIRST_PIECE
from regard.errors import RegardError

KINDS = ("bpe", "words", "characters")
ODD_CHARACTERS = (
    "<0x41> <end> \0 \u2581 Ġ 漢字かな שלום e\u0301 \u2028\r\n\u00a0\ufeff\t? 123 aujourd'hui"
)
TEXTS = [
    "the cat sat on the mat",
    "le chat est assis sur le tapis",
    "我喜欢喝茶",
    ODD_CHARACTERS,
] * 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vocab_size", [261, 262, 275, 300])
def test_vocabulary_is_at_most_the_requested_size(kind, vocab_size):
    trained = train_tokenizer(TEXTS, kind, vocab_size)
    assert FIRST_PIECE < len(trained) <= vocab_size
    assert len(set(trained.pieces)) == len(trained.pieces)
    assert trained.decode(trained.encode(ODD_CHARACTERS)) == ODD_CHARACTERS


@pytest.mark.parametrize("kind", KINDS)
def test_vocab_size_without_room_for_pieces_is_refused(kind):
    with pytest.raises(RegardError, match="data.vocab_size must be above 260.*but it is 260"):
        train_tokenizer(TEXTS, kind, 260)


@pytest.mark.parametrize("kind", KINDS)
def test_training_without_text_falls_back_to_bytes(kind):
    trained = train_tokenizer([], kind, 300)
    assert trained.decode(trained.encode("été")) == "été"


# more characters than the alphabet may have, most of them equally frequent
TRAIN_WITH_TIES = """
import json
from regard.data import train_tokenizer
KINDS = ("bpe", "words", "characters")
characters = [chr(0x4E00 + number) for number in range(200)]
texts = ["".join(characters[n : n + 7]) for n in range(0, 190, 5)]
print(json.dumps([train_tokenizer(texts, kind, 320).to_dict() for kind in KINDS]))
"""


def test_ties_are_broken_alike_in_every_process():
    runs = [
        subprocess.run(
            [sys.executable, "-c", TRAIN_WITH_TIES], check=True, capture_output=True
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    bpe, *_ = json.loads(runs[0])
    assert sum(len(piece) == 1 for piece in bpe["pieces"]) == 30, "half of 60 pieces is the limit"


@pytest.mark.parametrize("kind", KINDS)
def test_training_twice_gives_the_same_tokenizer(kind):
    assert (
        train_tokenizer(TEXTS, kind, 340).to_dict() == train_tokenizer(TEXTS, kind, 340).to_dict()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_the_texts_does_not_matter(kind):
    assert (
        train_tokenizer(TEXTS[::-1], kind, 300).to_dict()
        == train_tokenizer(TEXTS, kind, 300).to_dict()
    )


@pytest.mark.usefixtures("unchecked")
def test_unknown_kind_is_refused_with_the_choices():
    with pytest.raises(RegardError, match="no tokenizer is called 'word'. Did you mean 'words'"):
        train_tokenizer(["the cat"], "word", 300)
