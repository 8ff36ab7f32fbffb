"""Positions found by the text of tokens."""

import pytest

from regard import RegardError
from regard.interventions import tokens_of
from regard.trace import TokenList


def test_words_are_found_across_pieces_and_wherever_they_occur():
    assert tokens_of("Paris", ["ĠPar", "is", "Ġor", "ĠParis"]) == [0, 1, 3]
    assert tokens_of("New York", ["in", "New", "York", "##ers"]) == [1, 2]
    assert tokens_of("巴黎", TokenList(("在", "巴", "黎"))) == [1, 2]


def test_a_part_of_a_token_is_no_match():
    with pytest.raises(RegardError, match="no tokens spell 'art'; the tokens are c art art s$"):
        tokens_of("art", ["c art", "art s"])


def test_tokens_are_required():
    with pytest.raises(RegardError, match="needs tokens, or tokenizer= and inputs="):
        tokens_of("Paris")
