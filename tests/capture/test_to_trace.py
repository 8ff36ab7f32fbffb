import numpy as np
import pytest
import torch
from torch import nn

from helpers.summary_reference import mean_of_tiles
from regard import RegardError, masks, watch
from regard.attention import KVCache, MultiHeadAttention
from regard.trace import TokenList


class EncoderDecoder(nn.Module):
    """An encoder and a decoder of one layer each."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.cross = (MultiHeadAttention(12, 3) for _ in range(3))

    def forward(self, source, target, lengths=None):
        mask = None if lengths is None else masks.lengths(lengths)
        encoded = self.encoder(source, mask=mask)
        return self.cross(self.decoder(target, mask=masks.causal()), encoded, mask=mask)


def run_watched(model, *args, **kwargs):
    with torch.no_grad(), watch(model, **kwargs) as capture:
        model(*args)
    return capture


def test_encoder_decoder_has_source_and_target():
    capture = run_watched(EncoderDecoder(), torch.randn(2, 7, 12), torch.randn(2, 5, 12))
    trace = capture.trace(
        list("abcdefg"), list("vwxyz"), batch_index=1, title="a title", gold=[(1, 2)]
    )
    axes = [(x.kind, x.queries, x.keys) for x in trace.maps]
    assert axes == [
        ("self", "source", "source"),
        ("causal", "decoder_input", "decoder_input"),
        ("cross", "target", "source"),
    ]
    assert trace.maps[2].query_inputs == "decoder_input"
    assert (trace.title, trace.model, trace.gold) == ("a title", "EncoderDecoder", ((1, 2),))
    np.testing.assert_array_equal(trace.maps[2].weights, capture.weights("cross")[1].numpy())


def test_rows_of_cross_attention_are_the_next_tokens_and_the_last_is_unknown():
    capture = run_watched(EncoderDecoder(), torch.randn(2, 7, 12), torch.randn(2, 5, 12))
    read = TokenList(("<s>", "x", "y", "z", "<p>"), special=(0,), padding=(4,))
    trace = capture.trace(target=read, gold=[(1, 2)])
    assert trace.row_tokens(trace.maps[2], "input") == read
    written = trace.row_tokens(trace.maps[2])
    assert written.pieces == ("x", "y", "z", "…", "…")
    assert written.words == (1, 2, 3, None, None)  # as in `read`, which gold links count
    assert (written.special, written.padding) == ((3,), (4,))


def test_written_tokens_that_are_given_name_the_rows_of_cross_attention():
    capture = run_watched(EncoderDecoder(), torch.randn(2, 7, 12), torch.randn(2, 5, 12))
    trace = capture.trace(target=list("svwxy"), written=list("vwxyz"))
    assert trace.tokens["target"].pieces == tuple("vwxyz")
    assert trace.tokens["decoder_input"].pieces == tuple("svwxy")
    with pytest.raises(RegardError, match="5 queries, but there are 4 target tokens"):
        capture.trace(target=list("svwxy"), written=list("vwxy"))


def test_rows_are_not_shifted_without_causal_attention():
    model = MultiHeadAttention(12, 3)
    capture = run_watched(model, torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    trace = capture.trace(target=list("vwxyz"))
    assert (trace.maps[0].queries, trace.maps[0].query_inputs) == ("target", None)
    assert trace.tokens["target"].pieces == tuple("vwxyz")


def test_texts_of_equal_length_are_distinguished():
    capture = run_watched(EncoderDecoder(), torch.randn(2, 5, 12), torch.randn(2, 5, 12))
    queries = [x.queries for x in capture.trace().maps]
    assert queries == ["source", "target", "target"]


def test_tokens_that_are_not_given_are_numbered():
    trace = run_watched(EncoderDecoder(), torch.randn(2, 7, 12), torch.randn(2, 5, 12)).trace()
    assert trace.tokens["target"].pieces == ("0", "1", "2", "3", "4")
    trace = run_watched(MultiHeadAttention(12, 3), torch.randn(2, 3, 12)).trace()
    assert trace.tokens["text"].pieces == ("0", "1", "2")


def test_single_text_is_named_text():
    trace = run_watched(MultiHeadAttention(12, 3), torch.randn(2, 3, 12)).trace(["a", "b", "c"])
    assert set(trace.tokens) == {"text"}
    assert trace.maps[0].value_norms.shape == (3, 3)


@pytest.mark.parametrize("keep", ["all", "summary"])
def test_fully_masked_keys_are_padding_unless_the_user_marked_it(keep):
    model = EncoderDecoder()
    capture = run_watched(model, torch.randn(2, 7, 12), torch.randn(2, 5, 12), [7, 4], keep=keep)
    assert capture.trace(batch_index=1).tokens["source"].padding == (4, 5, 6)
    assert capture.trace(batch_index=0).tokens["source"].padding == ()
    own = TokenList(tuple("abcdefg"), padding=(6,))
    assert capture.trace(own, batch_index=1).tokens["source"].padding == (6,)


def test_wrong_number_of_tokens_is_refused():
    capture = run_watched(EncoderDecoder(), torch.randn(2, 7, 12), torch.randn(2, 5, 12))
    with pytest.raises(ValueError, match="encoder has 7 queries, but there are 6 source tokens"):
        capture.trace(list("abcdef"), list("vwxyz"))
    with pytest.raises(ValueError, match="5 queries, but there are 9 decoder_input tokens"):
        capture.trace(list("abcdefg"), list("abcdefghi"))


def test_batch_index_or_call_out_of_range_is_refused():
    capture = run_watched(MultiHeadAttention(12, 3), torch.randn(2, 3, 12))
    with pytest.raises(RegardError, match="batch_index must be from 0 to 1"):
        capture.trace(batch_index=2)
    with pytest.raises(RegardError, match="no module has a call 3"):
        capture.trace(call=3)


def capture_last_steps(model, rows, first, keep):
    """Run the first rows unwatched and the others step by step, watched."""
    with torch.no_grad():
        _, cache = model.step(rows[:, :first], KVCache())
        with watch(model, keep=keep) as capture:
            for n in range(first, rows.shape[1]):
                _, cache = model.step(rows[:, n : n + 1], cache)
    return capture.trace().maps[0]


@pytest.mark.parametrize("keep", ["all", "summary"])
def test_queries_before_the_capture_have_empty_rows(keep):
    attention_map = capture_last_steps(MultiHeadAttention(12, 3), torch.randn(1, 6, 12), 4, keep)
    assert attention_map.shape == (3, 6, 6)
    rows = attention_map.weights if keep == "all" else attention_map.summary.top_weights
    assert not rows[:, :4].any() and rows[:, 4:].any(-1).all()


@pytest.mark.parametrize("length, first", [(6, 4), (66, 60)])
def test_tiles_cover_queries_before_the_capture(length, first):
    model, rows = MultiHeadAttention(12, 3), torch.randn(1, length, 12)
    weights = capture_last_steps(model, rows, first, "all").weights
    tiles = capture_last_steps(model, rows, first, "summary").summary.tiles
    expected = mean_of_tiles(weights)
    assert tiles.shape == expected.shape
    assert not tiles[:, : first * tiles.shape[1] // length].any()
    if length <= 64:
        np.testing.assert_allclose(tiles, expected, atol=1e-6)
    np.testing.assert_allclose(tiles.sum(), expected.sum(), rtol=0.05)


def test_texts_of_several_lengths_have_separate_lists():
    model = MultiHeadAttention(12, 3)
    with watch(model) as capture:
        model(torch.randn(2, 3, 12))
        model(torch.randn(2, 4, 12))
    trace = capture.trace()
    assert {name: len(tokens) for name, tokens in trace.tokens.items()} == {
        "text": 3,
        "text of 4": 4,
    }
    assert capture.trace(list("abcd"), call=1).maps[0].shape == (3, 4, 4)


class Stages(nn.Module):
    """An encoder of an image, perhaps in stages: each has half the positions of the one before."""

    def __init__(self, has_class_token=False):
        super().__init__()
        self.has_class_token = has_class_token
        self.first, self.down, self.second, self.last = (
            MultiHeadAttention(12, 3) for _ in range(4)
        )

    def forward(self, rows):
        rows = self.first(rows)
        if self.has_class_token:
            rows = torch.cat([rows.mean(1, keepdim=True), rows], dim=1)
            return self.last(rows[:, :1].clone(), rows)
        rows = self.second(self.down(rows[:, ::2].clone(), rows))
        return self.last(rows[:, ::2].clone(), rows)


def lists_of_maps(trace):
    return [(x.queries, x.keys) for x in trace.maps]


def test_stages_of_several_lengths_have_separate_lists():
    trace = run_watched(Stages(), torch.randn(2, 12, 12)).trace()
    assert lists_of_maps(trace) == [
        ("text", "text"),
        ("text of 6", "text"),
        ("text of 6", "text of 6"),
        ("text of 3", "text of 6"),
    ]
    assert {name: len(tokens) for name, tokens in trace.tokens.items()} == {
        "text": 12,
        "text of 6": 6,
        "text of 3": 3,
    }


def test_keys_with_a_class_token_have_a_list_of_their_own():
    trace = run_watched(Stages(has_class_token=True), torch.randn(2, 4, 12)).trace()
    assert lists_of_maps(trace) == [("source", "source"), ("target", "source of 5")]
    assert [len(trace.tokens[x]) for x in ("source", "target", "source of 5")] == [4, 1, 5]


def test_tokens_that_fit_some_layers_only_are_refused_by_naming_both():
    capture = run_watched(Stages(), torch.randn(2, 12, 12))
    with pytest.raises(
        RegardError,
        match=r"12 text tokens fit first, but not down \(6 queries\), second \(6 queries\) and 1 "
        "more; select layers with modules=, or omit the tokens",
    ):
        capture.trace(list("abcdefghijkl"))
    with pytest.raises(RegardError, match=r"7 text tokens do not fit first \(12 queries\), down"):
        capture.trace(list("abcdefg"))
    trace = capture.trace(list("abcdef"), modules="second")
    assert [x.name for x in trace.maps] == ["second"]
    assert trace.tokens["text"].pieces == tuple("abcdef")
    with pytest.raises(RegardError, match="captured module"):
        capture.trace(modules="third")


class SharpAttention(nn.Module):
    """Attention without projections, in which large inputs make weights exactly 0."""

    def __init__(self, by_softmax):
        super().__init__()
        self.by_softmax = by_softmax

    def forward(self, rows, visible=None):
        if not self.by_softmax:
            mask = None if visible is None else visible[:, None, None]
            return nn.functional.scaled_dot_product_attention(rows, rows, rows, mask)
        scores = rows @ rows.mT
        if visible is not None:
            scores = scores.masked_fill(~visible[:, None, None], torch.finfo(scores.dtype).min)
        return scores.softmax(-1) @ rows


@pytest.mark.parametrize("by_softmax", [False, True])
def test_only_masked_keys_are_padding(by_softmax):
    rows = torch.zeros(2, 1, 5, 12)
    rows[..., 0] = torch.tensor([1.0, 2, 3, 4, 5]) * 100  # all attend to the last key
    model = SharpAttention(by_softmax)
    assert run_watched(model, rows).trace().tokens["text"].padding == ()
    rows = torch.randn(2, 1, 5, 12)
    capture = run_watched(model, rows, torch.arange(5) < torch.tensor([[3], [5]]))
    assert capture.trace(batch_index=0).tokens["text"].padding == (3, 4)
    assert capture.trace(batch_index=1).tokens["text"].padding == ()


def test_text_in_place_of_its_tokens_is_a_type_error(unchecked):
    model = MultiHeadAttention(12, heads=3)
    with watch(model) as capture:
        model(torch.randn(1, 3, 12))
    with pytest.raises(TypeError, match=r"tokens must be a list of strings, such as text.split\("):
        capture.trace("a b")


class MemoryKeys(nn.Module):
    """Causal attention over learned keys and those of the text, as x-transformers has it."""

    def __init__(self, memory=3):
        super().__init__()
        self.qkv = nn.Linear(12, 36)
        self.memory = nn.Parameter(torch.randn(2, 1, memory, 12))

    def forward(self, rows):
        q, k, v = self.qkv(rows).chunk(3, dim=-1)
        memory = self.memory.expand(-1, len(rows), -1, -1)
        k, v = (torch.cat(pair, dim=1) for pair in zip(memory, (k, v), strict=True))
        later = torch.ones(q.shape[1], k.shape[1]).triu(1 + self.memory.shape[2]).bool()
        return (q @ k.mT).masked_fill(later, -torch.inf).softmax(-1) @ v


def test_tokens_without_those_of_keys_before_the_first_query_are_refused():
    capture = run_watched(MemoryKeys(), torch.randn(2, 4, 12))
    assert (capture[0].kind, capture[0].offset) == ("causal", 3)
    with pytest.raises(
        RegardError,
        match="MemoryKeys has 3 keys before its first query, from a cache or learned, but there "
        "are text tokens for the 4 queries only; put 3 tokens before them",
    ):
        capture.trace(list("abcd"))
    trace = capture.trace(["+1", "+2", "+3", *"abcd"])
    np.testing.assert_array_equal(trace.maps[0].weights[0, 3:], capture[0].weights[0, 0].numpy())
    with pytest.raises(RegardError, match="7 queries, but there are 6 text tokens"):
        capture.trace(list("abcdef"))


@pytest.mark.parametrize("tokens", [lambda text: text, {"input_ids": [[1]]}, torch.ones(1, 3)])
def test_tokenizer_or_ids_in_place_of_tokens_are_a_type_error(unchecked, tokens):
    capture = run_watched(MultiHeadAttention(12, heads=3), torch.randn(1, 3, 12))
    hint = r"trace\(tokenizer=tokenizer, inputs=inputs\)" if callable(tokens) else ""
    with pytest.raises(TypeError, match=f"tokens must be a list of strings, but .*{hint}"):
        capture.trace(tokens)


class NullKeyAttention(torch.nn.Module):
    """Self-attention with a learned key before those of the text."""

    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(12, 36)
        self.null = torch.nn.Parameter(torch.randn(2, 1, 12))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        null_k, null_v = self.null.unsqueeze(1).expand(-1, len(x), -1, -1)
        k, v = torch.cat([null_k, k], dim=1), torch.cat([null_v, v], dim=1)
        return (q @ k.mT).softmax(-1) @ v


@torch.no_grad()
def test_learned_keys_come_after_the_tokens_in_a_trace():
    model = NullKeyAttention()
    with watch(model) as capture:
        model(torch.randn(2, 5, 12))
    assert capture[0].kind == "self"
    trace = capture.trace(["a", "b", "c", "d", "e"], batch_index=1)
    shown = trace.maps[0]
    assert trace.tokens[shown.keys].pieces == ("a", "b", "c", "d", "e", "+1")
    expected = capture[0].weights[1].roll(-1, -1).numpy()
    np.testing.assert_array_equal(shown.weights, expected)


@torch.no_grad()
def test_summarized_weights_of_learned_keys_are_refused_in_a_trace():
    model = NullKeyAttention()
    with watch(model, keep="summary") as capture:
        model(torch.randn(2, 5, 12))
    with pytest.raises(RegardError, match="1 learned keys.*keep='all'"):
        capture.trace()
