import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.viz.detokenize import BYTE_ALPHABET, CONTINUATION, display_tokens

# the JavaScript tests read the same cases
CASES = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "display_tokens.json").read_text("utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_pieces_are_displayed_as_text(case):
    assert display_tokens(case["pieces"], case["special"]) == tuple(case["displayed"])


def test_byte_alphabet_has_one_character_per_byte():
    assert sorted(BYTE_ALPHABET.values()) == list(range(256))
    assert (BYTE_ALPHABET["a"], BYTE_ALPHABET["Ġ"], BYTE_ALPHABET["Ċ"]) == (97, 32, 10)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.data())
def test_byte_level_pieces_split_anywhere_give_the_text_back(text, data):
    character_of = {byte: character for character, byte in BYTE_ALPHABET.items()}
    spelled = "".join(character_of[byte] for byte in f"\0{text}".encode())  # "\0" is unprintable
    cuts = sorted(data.draw(st.lists(st.integers(0, len(spelled)), max_size=5)))
    pieces = [spelled[a:b] for a, b in zip([0, *cuts], [*cuts, len(spelled)], strict=True)]
    displayed = [p for p in display_tokens(pieces) if p not in (CONTINUATION, "▁")]
    ignored = str.maketrans("", "", f"{CONTINUATION}▁ ")
    assert "".join(displayed).translate(ignored) == f"\0{text}".translate(ignored)
