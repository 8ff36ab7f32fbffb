import numpy as np
import pytest
import torch

from regard.trace import Look, Tokens, Trace, translation


def weights(heads, queries, keys):
    return torch.rand(heads, queries, keys).softmax(-1)


def texts(count):
    return [f"w{n}" for n in range(count)]


def test_a_translation_holds_three_attentions_in_order():
    trace = translation(
        texts(7),
        texts(5),
        encoder=[weights(3, 7, 7)] * 2,
        decoder=[weights(3, 5, 5)] * 2,
        cross=[weights(3, 5, 7)] * 2,
        gold=[(6, 4), (0, 1)],
    )
    assert [look.kind for look in trace.looks] == ["self"] * 2 + ["causal"] * 2 + ["cross"] * 2
    assert [look.name for look in trace.layers("cross")] == ["cross.0", "cross.1"]
    assert trace.layers("cross", "target")[0].sizes == (3, 5, 7)
    assert trace.layers("cross", "source") == ()
    assert trace.looks[0].heads == (0, 1, 2)
    assert trace.gold == ((0, 1), (6, 4))


@pytest.mark.parametrize(
    "source, words",
    [
        (6, r"cross.0 has 7 keys, but 6 source tokens came: is a start or end token \(BOS, EOS\)"),
        (8, "is a start or end token .* in the list, but not in the model's input"),
        (3, "7 keys, but 3 source tokens came: was the sentence padded"),
        (21, "21 source tokens came: is there padding in the list, or more than one sentence"),
    ],
)
def test_a_token_list_of_the_wrong_length_is_refused(source, words):
    with pytest.raises(ValueError, match=words):
        translation(texts(source), texts(5), cross=[weights(3, 5, 7)])


def test_the_wrong_side_is_named():
    with pytest.raises(ValueError, match="cross.0 has 5 queries, but 9 target tokens came"):
        translation(texts(7), texts(9), cross=[weights(3, 5, 7)])


def test_a_batch_of_weights_is_refused():
    with pytest.raises(ValueError, match=r"weights\[0\] is the first sentence of a batch"):
        translation(texts(7), texts(5), cross=[weights(3, 5, 7)[None]])


def test_a_batch_of_tokens_is_refused(unchecked):
    with pytest.raises(ValueError, match="one sentence at a time"):
        Tokens((["a", "b"], ["c", "d"]))
    with pytest.raises(ValueError, match="must be a list of texts, but 'abc' came"):
        Tokens("abc")


def test_a_gold_link_beyond_the_words_is_refused():
    source = Tokens(("a", "b", "c", "</s>"), words=(0, 0, 1, None))
    translation(source, ["x"], gold=[(1, 0)])
    with pytest.raises(ValueError, match="within 2 and 1 words, but one is \\(2, 0\\)"):
        translation(source, ["x"], gold=[(2, 0)])


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"words": (0,)}, "words must be one for each of 2 pieces, not 1"),
        ({"log_probabilities": (0.0,) * 3}, "log_probabilities must be one for each"),
        ({"padding": (2,)}, "positions from 0 to 1, but one is 2"),
    ],
)
def test_what_belongs_to_pieces_must_fit_them(changes, words):
    with pytest.raises(ValueError, match=words):
        Tokens(("a", "b"), **changes)


def test_positions_that_are_not_padding():
    assert Tokens(tuple("abcd"), padding=(0, 3)).real.tolist() == [1, 2]


def test_a_look_needs_weights_or_their_reduction():
    with pytest.raises(ValueError, match="must have weights or what they were reduced to"):
        Look(name="a", kind="self", queries="text", keys="text")


def test_heads_and_value_norms_must_fit(unchecked):
    given = {"name": "a", "kind": "self", "queries": "t", "keys": "t"}
    whole = np.ones((3, 5, 7), dtype=np.float32)
    with pytest.raises(ValueError, match="must name 3"):
        Look(**given, weights=whole, heads=(0, 1))
    with pytest.raises(ValueError, match=r"value_norms of a must be \(3, 7\)"):
        Look(**given, weights=whole, value_norms=np.ones((3, 5)))
    with pytest.raises(ValueError, match="kind must be one of self, causal, cross"):
        Look(**given | {"kind": "across"}, weights=whole)


def test_a_look_at_tokens_that_are_not_there_is_refused():
    look = Look(name="a", kind="self", queries="text", keys="words", weights=np.ones((1, 2, 2)))
    with pytest.raises(ValueError, match="keys of a are 'words', but the tokens are 'text'"):
        Trace(tokens={"text": Tokens(("a", "b"))}, looks=(look,))


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"words": (0, "x")}, "words must be numbers from 0 upwards or None, but one is 'x'"),
        ({"words": (-5, 1)}, "words must be numbers from 0 upwards"),
        ({"words": (0, 2.5)}, "words must be numbers from 0 upwards"),
        ({"special": (0.5,)}, "positions from 0 to 1, but one is 0.5"),
        ({"padding": ("0",)}, "positions from 0 to 1, but one is '0'"),
        ({"log_probabilities": (None, {})}, "log_probabilities must be numbers or None"),
    ],
)
def test_what_belongs_to_pieces_must_be_numbers(unchecked, changes, words):
    with pytest.raises(ValueError, match=words):
        Tokens(("a", "b"), **changes)


@pytest.mark.parametrize("heads", [("<b>",), (float("nan"),), ({},), (-1,)])
def test_heads_are_numbers(unchecked, heads):
    whole = np.ones((1, 2, 2), dtype=np.float32)
    with pytest.raises(ValueError, match="heads of a must name 1 by numbers"):
        Look(name="a", kind="self", queries="t", keys="t", weights=whole, heads=heads)
