import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.viz.detokenize import GOES_ON, LETTERS, display_tokens

# the page's own decoder reads the same cases
CASES = json.loads((Path(__file__).parents[1] / "fixtures" / "pieces.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["says"] for case in CASES])
def test_pieces_are_told_as_text(case):
    assert display_tokens(case["pieces"], case["special"]) == tuple(case["readable"])


def test_the_byte_alphabet_has_a_letter_for_each_byte():
    assert sorted(LETTERS.values()) == list(range(256))
    assert (LETTERS["a"], LETTERS["Ġ"], LETTERS["Ċ"]) == (97, 32, 10)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.data())
def test_byte_level_pieces_cut_anywhere_give_the_text_back(text, data):
    letter = {byte: sign for sign, byte in LETTERS.items()}
    spelled = "".join(letter[byte] for byte in f"\0{text}".encode())  # "\0" is a shifted letter
    cuts = sorted(data.draw(st.lists(st.integers(0, len(spelled)), max_size=5)))
    pieces = [spelled[a:b] for a, b in zip([0, *cuts], [*cuts, len(spelled)], strict=True)]
    told = [piece for piece in display_tokens(pieces) if piece not in (GOES_ON, "▁")]
    kept = str.maketrans("", "", f"{GOES_ON}▁ ")
    assert "".join(told).translate(kept) == f"\0{text}".translate(kept)
