import json
import subprocess
import sys

import pytest

from regard.data import train_tokenizer
from regard.data.tokenizer import FIRST_PIECE
from regard.errors import RegardError

KINDS = ("bpe", "words", "characters")
SIGNS = "<0x41> <end> \0 \u2581 Ġ 漢字かな שלום e\u0301 \u2028\r\n\u00a0\ufeff\t? 123 aujourd'hui"
TEXTS = ["the cat sat on the mat", "le chat est assis sur le tapis", "我喜欢喝茶", SIGNS] * 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pieces", [261, 262, 275, 300])
def test_a_vocabulary_is_never_larger_than_was_asked(kind, pieces):
    learned = train_tokenizer(TEXTS, kind, pieces)
    assert FIRST_PIECE < len(learned) <= pieces
    assert len(set(learned.pieces)) == len(learned.pieces)
    assert learned.decode(learned.encode(SIGNS)) == SIGNS


@pytest.mark.parametrize("kind", KINDS)
def test_too_small_a_vocabulary_is_refused(kind):
    with pytest.raises(RegardError, match="data.vocab_size must be above 260.*but it is 260"):
        train_tokenizer(TEXTS, kind, 260)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_learn_from_is_no_error(kind):
    learned = train_tokenizer([], kind, 300)
    assert learned.decode(learned.encode("été")) == "été"


# more letters than there is room for, most of them equally common
AGAIN = """
import json
from regard.data import train_tokenizer
KINDS = ("bpe", "words", "characters")
signs = [chr(0x4E00 + number) for number in range(200)]
texts = ["".join(signs[n : n + 7]) for n in range(0, 190, 5)]
print(json.dumps([train_tokenizer(texts, kind, 320).to_dict() for kind in KINDS]))
"""


def test_another_process_learns_the_same_vocabulary():
    runs = [
        subprocess.run([sys.executable, "-c", AGAIN], check=True, capture_output=True).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    bpe, *_ = json.loads(runs[0])
    assert sum(len(piece) == 1 for piece in bpe["pieces"]) == 30, "some letters have no place"


@pytest.mark.parametrize("kind", KINDS)
def test_learning_again_learns_the_same(kind):
    assert (
        train_tokenizer(TEXTS, kind, 340).to_dict() == train_tokenizer(TEXTS, kind, 340).to_dict()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_the_texts_changes_nothing(kind):
    assert (
        train_tokenizer(TEXTS[::-1], kind, 300).to_dict()
        == train_tokenizer(TEXTS, kind, 300).to_dict()
    )
