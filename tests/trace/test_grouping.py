from dataclasses import replace

import numpy as np
import pytest

from regard import RegardError
from regard.trace import TokenList, build_translation_trace, collapse_special, merge_subwords


def test_merging_sums_over_keys_and_averages_over_queries():
    source = TokenList(("look", "ing", "up", "</s>"), words=(0, 0, 1, None), special=(3,))
    target = TokenList(("auf", "se", "hen"), words=(0, 1, 1), log_probs=(-1.0, -2.0, None))
    rows = [[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0], [0, 0, 0.5, 0.5]]
    trace = merge_subwords(build_translation_trace(source, target, cross=[[rows]], gold=[(0, 1)]))
    assert trace.tokens["source"].pieces == ("looking", "up", "</s>")
    assert trace.tokens["source"].special == (2,)
    assert trace.tokens["target"].pieces == ("auf", "sehen")
    assert trace.tokens["target"].log_probs == (-1.0, -2.0)
    assert trace.gold == ((0, 1),)
    expected = [[0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]
    np.testing.assert_allclose(trace.maps[0].weights[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("pieces", "merged"),
    [
        (("look", "##ed", "at", "##7"), ("looked", "at7")),  # WordPiece
        (("look", "ed", "at", "##7"), ("looked", "at##7")),  # not WordPiece: part of the text
        (("##", "##7", "a", "##b"), ("##7", "ab")),
    ],
)
def test_wordpiece_prefixes_are_dropped_when_pieces_are_joined(pieces, merged):
    source = TokenList(pieces, words=(0, 0, 1, 1))
    trace = build_translation_trace(source, ["x"], cross=[np.ones((1, 1, 4)) / 4])
    assert merge_subwords(trace).tokens["source"].pieces == merged


def test_merged_rows_sum_to_one():
    words = TokenList(tuple("abcdefg"), words=(None, 0, 0, 0, 1, 2, 2))
    weights = np.random.default_rng(0).dirichlet(np.ones(7), (3, 7))
    trace = merge_subwords(build_translation_trace(words, words, encoder=[weights]))
    np.testing.assert_allclose(trace.maps[0].weights.sum(-1), 1, atol=1e-6)
    assert trace.maps[0].shape == (3, 4, 4)


def test_merging_without_word_indices_changes_nothing():
    trace = build_translation_trace(list("abc"), ["x", "y"], cross=[np.ones((1, 2, 3)) / 3])
    assert merge_subwords(trace).tokens == trace.tokens


def test_adjacent_pieces_of_no_word_are_not_merged():
    source = TokenList(("<s>", "<fr>", "a"), words=(None, None, 0))
    trace = build_translation_trace(source, ["x"], cross=[np.ones((1, 1, 3)) / 3])
    assert merge_subwords(trace).tokens["source"].pieces == ("<s>", "<fr>", "a")


def test_merging_keeps_padding_marked():
    source = TokenList(("a", "b", "", ""), words=(0, 0, None, None), padding=(2, 3))
    trace = build_translation_trace(source, ["x"], cross=[np.ones((1, 1, 4)) / 4])
    assert merge_subwords(trace).tokens["source"].padding == (1, 2)


@pytest.mark.parametrize("group", [merge_subwords, collapse_special])
def test_summaries_cannot_be_grouped(summarized_trace, group):
    with pytest.raises(RegardError, match="is a summary, but only full weights .* keep='all'"):
        group(summarized_trace)


def padded_trace():
    weights = np.random.default_rng(0).dirichlet(np.ones(6), size=(3, 4))
    source = TokenList(
        ("<s>", "a", "b", "</s>", "<pad>", "<pad>"),
        words=(None, 0, 1, None, None, None),
        special=(0, 3),
        padding=(4, 5),
    )
    target = TokenList(("x", "y", "z", "</s>"), special=(3,))
    return build_translation_trace(source, target, cross=[weights])


def test_special_tokens_and_padding_collapse_into_one_last_piece():
    tokens = collapse_special(padded_trace()).tokens
    assert tokens["source"].pieces == ("a", "b", "⋯")
    assert tokens["source"].words == (0, 1, None)
    assert tokens["source"].special == (2,)
    assert tokens["target"].pieces == ("x", "y", "z", "⋯")


def test_collapsed_keys_are_summed_and_rows_sum_to_one():
    before = padded_trace().maps[0].weights
    after = collapse_special(padded_trace()).maps[0].weights
    assert after.shape == (3, 4, 3)
    np.testing.assert_allclose(after.sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose(after[..., :2], before[..., 1:3])
    np.testing.assert_allclose(after[..., 2], before[..., [0, 3, 4, 5]].sum(-1), rtol=1e-6)


def test_collapsed_queries_are_averaged():
    weights = np.array([[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.1, 0.7, 0.2]]])
    tokens = TokenList(("<s>", "a", "</s>"), special=(0, 2))
    trace = collapse_special(build_translation_trace(tokens, tokens, encoder=[weights]))
    np.testing.assert_allclose(trace.maps[0].weights, [[[1.0, 0.0], [0.475, 0.525]]], rtol=1e-6)


def test_collapsing_is_idempotent_and_is_kept_by_merging():
    once = collapse_special(padded_trace())
    twice = collapse_special(once)
    assert once.tokens == twice.tokens
    np.testing.assert_allclose(once.maps[0].weights, twice.maps[0].weights)
    np.testing.assert_allclose(merge_subwords(once).maps[0].weights, once.maps[0].weights)


def test_trace_without_special_tokens_is_not_changed_by_collapsing():
    trace = build_translation_trace(["a", "b"], ["c"], cross=[np.array([[[0.25, 0.75]]])])
    collapsed = collapse_special(trace)
    assert collapsed.tokens == trace.tokens
    assert collapsed.maps[0].weights.tolist() == [[[0.25, 0.75]]]


def test_value_norms_and_log_probs_are_collapsed_too():
    trace = build_translation_trace(
        TokenList(("<s>", "a", "</s>"), special=(0, 2), log_probs=(None, -1.0, -2.0)),
        ["x"],
        cross=[np.array([[[0.25, 0.5, 0.25]]])],
    )
    norms = np.array([[4.0, 3.0, 8.0]], dtype=np.float32)
    trace = replace(trace, maps=(replace(trace.maps[0], value_norms=norms),))
    collapsed = collapse_special(trace)
    assert collapsed.tokens["source"].log_probs == (-1.0, None)
    assert collapsed.maps[0].value_norms.tolist() == [[3.0, 6.0]]


@pytest.mark.parametrize(
    "words, links",
    [(None, [(1, 1), (2, 2), (1, 3)]), ((None, 0, 1, None), [(0, 0), (1, 1)])],
    ids=["pieces as words", "given words"],
)
def test_gold_links_follow_the_words_that_remain(words, links):
    tokens = TokenList(("<s>", "a", "b", "</s>"), words=words, special=(0, 3))
    trace = build_translation_trace(tokens, tokens, gold=links)
    assert collapse_special(trace).gold == ((0, 0), (1, 1))


def decoder_trace(written, read, words):
    """Return a trace in which the decoder writes a list and reads another, by words of both."""
    target = TokenList(written, words=words[0], special=marked(written))
    decoder_input = TokenList(read, words=words[1], special=marked(read))
    weights = np.random.default_rng(0).dirichlet(np.ones(2), size=(1, len(written)))
    return build_translation_trace(["a", "b"], target, decoder_input=decoder_input, cross=[weights])


def marked(pieces):
    return tuple(n for n, piece in enumerate(pieces) if piece.startswith("<"))


@pytest.mark.parametrize(
    "written, read, words, merged_written, merged_read",
    [
        (
            ("le", "ch", "at", "dort", "</s>"),
            ("<s>", "le", "ch", "at", "dort"),
            ((0, 1, 1, 2, None), (None, 0, 1, 1, 2)),
            ("le", "chat", "dort", "</s>"),
            ("<s>", "le", "chat", "dort"),
        ),
        (  # the translation is truncated within a word
            ("le", "ch", "at"),
            ("<s>", "le", "ch"),
            ((0, 1, 1), (None, 0, 1)),
            ("le", "chat"),
            ("<s>", "le"),
        ),
        (  # a forced language token
            ("<fr>", "ch", "at", "</s>"),
            ("</s>", "<fr>", "ch", "at"),
            ((None, 0, 0, None), (None, None, 0, 0)),
            ("<fr>", "chat", "</s>"),
            ("</s>", "<fr>", "chat"),
        ),
    ],
)
def test_merged_rows_have_the_input_word_of_their_first_piece(
    written, read, words, merged_written, merged_read
):
    trace = merge_subwords(decoder_trace(written, read, words))
    cross = trace.maps[0]
    assert trace.row_tokens(cross).pieces == merged_written
    assert trace.row_tokens(cross, "input").pieces == merged_read
    assert merge_subwords(trace).tokens == trace.tokens


def test_collapsed_rows_have_the_input_that_their_first_token_reads():
    words = (0, 1, None), (None, 0, 1)
    trace = decoder_trace(("chat", "dort", "</s>"), ("<s>", "chat", "dort"), words)
    collapsed = collapse_special(trace)
    cross = collapsed.maps[0]
    assert collapsed.row_tokens(cross).pieces == ("chat", "dort", "⋯")
    assert collapsed.row_tokens(cross, "input").pieces == ("⋯", "chat", "dort")
    assert collapsed.row_tokens(cross, "input").special == (0,)
    assert collapsed.tokens["decoder_input"].pieces == ("chat", "dort", "⋯")
    assert collapse_special(collapsed).tokens == collapsed.tokens
    assert merge_subwords(collapsed).row_tokens(cross, "input").pieces == ("⋯", "chat", "dort")
