"""Beam search and greedy search."""

import itertools
import sys

import numpy as np
import pytest
import torch

from helpers.toy_decoders import (
    ConstantModel,
    MarkovModel,
    StatelessState,
    forced_log_probs,
    forced_text_log_probs,
)
from regard import RegardError
from regard.config import ModelConfig
from regard.data import BOS, EOS, PAD
from regard.decoding import (
    BeamSearch,
    DecodingCancelled,
    LengthLimits,
    SamplingConfig,
    beam_search,
    greedy_search,
    sample,
)
from regard.decoding.topk import grouped_topk
from regard.models import build, build_language_model

VOCAB_SIZE = 9
LM_CONFIG = ModelConfig(width=12, layers=1, heads=3, ffn_width=8)
SEARCHES = [greedy_search, beam_search, sample]


def test_greedy_search_takes_the_most_probable_token_at_each_step(tiny_model):
    model, source, lengths = tiny_model
    results = greedy_search(model, source, lengths, limits=LengthLimits(max_length=8))
    for item, hypothesis in enumerate(results):
        length = lengths[item : item + 1]
        encoded = model.encode(source[item : item + 1, : int(length)], length)
        state, token, tokens = model.init_state(encoded), BOS, []
        while len(tokens) < 8:
            states, state = model.step(torch.tensor([[token]]), state)
            logits = model.logits(states)[0, 0]
            logits[[PAD, BOS]] = -torch.inf
            token = int(logits.argmax())
            if token == EOS:
                break
            tokens.append(token)
        assert hypothesis.tokens == tuple(tokens)


def test_beam_search_scores_agree_with_teacher_forcing(tiny_model):
    results = beam_search(
        *tiny_model, beam_size=4, n_best=4, length_penalty=0.7, limits=LengthLimits(max_length=7)
    )
    for item, hypotheses in enumerate(results):
        for hypothesis in hypotheses:
            total = sum(forced_log_probs(*tiny_model, item, hypothesis.tokens))
            assert hypothesis.log_prob == pytest.approx(total, abs=1e-4)
            length = len(hypothesis.tokens) + 1
            assert hypothesis.score == pytest.approx(total / length**0.7, abs=1e-4)


def test_n_best_hypotheses_are_sorted_and_distinct(tiny_model):
    limits = LengthLimits(max_length=6)
    for hypotheses in beam_search(*tiny_model, beam_size=5, n_best=5, limits=limits):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert len({hypothesis.tokens for hypothesis in hypotheses}) == 5
        assert scores == sorted(scores, reverse=True)


def test_exhaustive_beam_finds_the_global_optimum(tiny_model):
    words = [token for token in range(VOCAB_SIZE) if token not in (PAD, BOS, EOS)]
    results = beam_search(
        *tiny_model, beam_size=60, length_penalty=0.0, limits=LengthLimits(max_length=2)
    )
    for item, (hypothesis,) in enumerate(results):
        log_prob, tokens = max(
            (sum(forced_log_probs(*tiny_model, item, tokens)), tokens)
            for length in range(3)
            for tokens in itertools.product(words, repeat=length)
        )
        assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-4)
        assert hypothesis.tokens == tokens


def test_batch_items_do_not_influence_each_other(tiny_model):
    model, source, lengths = tiny_model
    limits = LengthLimits(max_length=7)
    together = beam_search(model, source, lengths, beam_size=3, limits=limits)
    for item in range(3):
        rows = slice(item, item + 1)
        ((alone,),) = beam_search(model, source[rows], lengths[rows], beam_size=3, limits=limits)
        assert alone.tokens == together[item][0].tokens
        assert alone.score == pytest.approx(together[item][0].score, abs=1e-4)


def test_search_from_a_state_equals_search_from_source_tokens(tiny_model):
    model, source, lengths = tiny_model
    state, limits = model.init_state(model.encode(source, lengths)), LengthLimits(max_length=7)
    for search in (beam_search, greedy_search):
        assert search(model, state, limits=limits) == search(model, source, lengths, limits=limits)


def test_min_length_max_length_and_prefix_are_respected(tiny_model):
    limits = LengthLimits(min_length=4, max_length=5, prefix=(7, 5))
    for hypotheses in beam_search(*tiny_model, beam_size=3, n_best=3, limits=limits):
        for hypothesis in hypotheses:
            assert 4 <= len(hypothesis.tokens) <= 5
            assert hypothesis.tokens[:2] == (7, 5)


def test_language_model_continues_a_prompt():
    model = build_language_model(LM_CONFIG, VOCAB_SIZE).eval()
    limits = LengthLimits(max_length=6, prefix=(5, 6))
    ((hypothesis,),) = beam_search(model, model.init_state(), beam_size=2, limits=limits)
    assert hypothesis.tokens[:2] == (5, 6)
    expected = forced_text_log_probs(model, hypothesis.tokens)
    assert hypothesis.token_log_probs == pytest.approx(expected, abs=1e-4)
    assert hypothesis.log_prob == pytest.approx(sum(expected), abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beam_size": 0}, "beam_size must be 1 or more, but it is 0; 1 is greedy"),
        (
            {"beam_size": 2, "n_best": 3},
            r"n_best must be from 1 to beam_size \(2\), but it is 3",
        ),
        ({"length_penalty": 500.0}, "length_penalty must be from -10 to 10, but it is 500.0"),
        (
            {"length_penalty": float("nan")},
            "length_penalty must be from -10 to 10, but it is nan",
        ),
    ],
)
def test_beam_search_argument_out_of_range_is_refused(tiny_model, arguments, message):
    with pytest.raises(RegardError, match=message):
        beam_search(*tiny_model, **arguments)


@pytest.mark.parametrize("search", SEARCHES)
def test_source_tokens_without_encoder_and_a_state_with_lengths_are_refused(tiny_model, search):
    model, source, lengths = tiny_model
    with pytest.raises(TypeError, match="needs a Seq2SeqModel; other models start from a state"):
        search(build_language_model(LM_CONFIG, VOCAB_SIZE), source, lengths)
    with pytest.raises(TypeError, match="lengths must be None when a search starts from a state"):
        search(model, model.init_state(model.encode(source, lengths)), lengths)


@pytest.mark.parametrize("search", SEARCHES)
def test_lengths_are_counted_from_padding_if_none_are_given(tiny_model, search):
    model, source, lengths = tiny_model
    padded = source.masked_fill(torch.arange(6) >= lengths[:, None], PAD)
    options = {"limits": LengthLimits(max_length=6)}
    if search is sample:
        options["sampling"] = SamplingConfig(seed=1)
    assert search(model, padded, **options) == search(model, source, lengths, **options)


def test_contradictory_length_limits_are_refused():
    with pytest.raises(
        RegardError, match="min_length must be from 0 to max_length, but they are 5 and 3"
    ):
        LengthLimits(min_length=5, max_length=3)
    with pytest.raises(RegardError, match="prefix must have at most max_length=2 tokens.*it has 3"):
        LengthLimits(max_length=2, prefix=(4, 5, 6))


@pytest.mark.parametrize("token", [PAD, BOS, EOS, -1])
def test_prefix_with_special_token_is_refused(token):
    with pytest.raises(RegardError, match=f"prefix must be tokens .* end, but one is {token}"):
        LengthLimits(prefix=(5, token))


def test_prefix_beyond_the_vocabulary_is_refused(tiny_model):
    with pytest.raises(RegardError, match="prefix must be tokens below 9, .*, but one is 9"):
        beam_search(*tiny_model, limits=LengthLimits(prefix=(4, 9)))


def test_empty_batch_has_no_hypotheses():
    model = MarkovModel(torch.randn(VOCAB_SIZE, VOCAB_SIZE))
    assert beam_search(model, StatelessState(0), limits=LengthLimits(prefix=(5, 6))) == []


def test_finished_hypothesis_is_not_continued():
    logits = torch.randn(VOCAB_SIZE, VOCAB_SIZE)
    logits[:, EOS] += 2  # EOS is often probable, so it is often among the candidates
    limits = LengthLimits(max_length=5)
    for hypotheses in beam_search(
        MarkovModel(logits), StatelessState(2), beam_size=6, n_best=6, limits=limits
    ):
        for hypothesis in hypotheses:
            assert EOS not in hypothesis.tokens
            assert_scored_by(logits, hypothesis)


def assert_scored_by(logits, hypothesis):
    path, log_probs = [BOS, *hypothesis.tokens, EOS], logits.log_softmax(-1)
    expected = [log_probs[a, b].item() for a, b in itertools.pairwise(path)]
    assert hypothesis.token_log_probs == pytest.approx(expected, abs=1e-4)
    assert hypothesis.log_prob == pytest.approx(sum(expected), abs=1e-4)


def test_logits_tensor_of_the_model_is_not_modified():
    class SameTensorModel:
        """Model that returns one and the same tensor of logits at every step."""

        tensor = torch.arange(7.0).expand(2, 1, 7).contiguous()

        def step(self, tokens, state):
            return tokens[..., None].float(), state

        def logits(self, states):
            return self.tensor

    model = SameTensorModel()
    greedy_search(model, StatelessState(2), limits=LengthLimits(max_length=3))
    assert torch.equal(model.tensor, torch.arange(7.0).expand(2, 1, 7))


@pytest.mark.parametrize("search", SEARCHES)
def test_search_ends_when_all_hypotheses_have_ended(search):
    model, steps = ConstantModel([0.0, 0.0, 50.0, 0.0, 0.0]), []
    step = model.step
    model.step = lambda tokens, state: steps.append(1) or step(tokens, state)
    search(model, StatelessState(2), limits=LengthLimits(max_length=sys.maxsize))
    assert len(steps) < 9


@pytest.mark.parametrize("beam_size", [2, 3, 5])
def test_beam_with_nan_logits_does_not_displace_sound_beams(beam_size):
    logits = torch.randn(VOCAB_SIZE, VOCAB_SIZE)
    logits[:, 7] += 3  # probable, and NaN from there on
    broken = logits.clone()
    broken[7] = torch.nan
    model = MarkovModel(logits)
    model.logits = lambda states: broken[states.argmax(-1)]
    for hypotheses in beam_search(
        model,
        StatelessState(2),
        beam_size=beam_size,
        n_best=beam_size,
        limits=LengthLimits(max_length=5),
    ):
        assert hypotheses
        for hypothesis in hypotheses:
            assert 7 not in hypothesis.tokens
            assert_scored_by(logits, hypothesis)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    ("logits", "limits"),
    [
        ([float("nan")] * 9, LengthLimits(max_length=4)),
        ([0.0] * 3, LengthLimits(min_length=1, max_length=4)),
    ],
    ids=["NaN logits", "no token but EOS"],
)
def test_search_without_any_hypothesis_is_an_error(search, logits, limits):
    with pytest.raises(RegardError, match=r"batch item 0 .* has no hypothesis: .*NaN.*limits"):
        search(ConstantModel(logits), StatelessState(2), limits=limits)


@pytest.mark.parametrize("prefix", [(), (5, 4)])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_scoring_in_chunks_gives_the_same_hypotheses(tiny_model, monkeypatch, beam_size, prefix):
    model, source, lengths = tiny_model
    chunks, logits = [], model.logits
    monkeypatch.setattr(model, "logits", lambda s: chunks.append(s.shape[:2]) or logits(s))

    def run(**chunking):
        chunks.clear()
        state = model.init_state(model.encode(source, lengths))
        limits = LengthLimits(max_length=6, prefix=prefix)
        search = BeamSearch(model, state, beam_size=beam_size, limits=limits, **chunking)
        with torch.no_grad():
            return search.run(lambda *scored: grouped_topk(*scored, k=2 * beam_size))

    at_once = run()
    in_chunks = run(rows_per_chunk=2)
    assert max(items * beams for items, beams in chunks) == max(2, beam_size)
    for one, other in zip(at_once, in_chunks, strict=True):
        assert [hypothesis.tokens for hypothesis in one] == [each.tokens for each in other]
        assert [each.score for each in one] == pytest.approx([each.score for each in other])
        for left, right in zip(one, other, strict=True):
            assert left.token_log_probs == pytest.approx(right.token_log_probs, abs=1e-5)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("after", [0, 1, 4])
def test_should_stop_cancels_the_search_before_the_next_step(tiny_model, search, after):
    model, source, lengths = tiny_model
    steps, step = [], model.step
    model.step = lambda tokens, state: steps.append(1) or step(tokens, state)
    with pytest.raises(DecodingCancelled):
        search(
            model,
            source,
            lengths,
            limits=LengthLimits(min_length=9),
            should_stop=lambda: len(steps) >= after,
        )
    assert len(steps) == after


@pytest.mark.parametrize("search", SEARCHES)
def test_should_stop_cancels_while_the_prefix_is_forced(tiny_model, search):
    model, source, lengths = tiny_model
    steps, step = [], model.step
    model.step = lambda tokens, state: steps.append(1) or step(tokens, state)
    limits = LengthLimits(prefix=(5, 6, 7, 8))
    with pytest.raises(DecodingCancelled):
        search(model, source, lengths, limits=limits, should_stop=lambda: len(steps) == 2)
    assert len(steps) == 2


@pytest.mark.parametrize("search", SEARCHES)
def test_cancelled_search_does_not_encode(tiny_model, search):
    model, source, lengths = tiny_model
    model.encode = model.encode_bucketed = None  # would raise TypeError
    with pytest.raises(DecodingCancelled):
        search(model, source, lengths, should_stop=lambda: True)


@pytest.mark.parametrize("search", SEARCHES)
def test_should_stop_that_stays_false_changes_nothing(tiny_model, search):
    model, source, lengths = tiny_model
    arguments = {"limits": LengthLimits(max_length=7)}
    if search is sample:
        arguments["sampling"] = SamplingConfig(seed=1)
    plain = search(model, source, lengths, **arguments)
    assert search(model, source, lengths, should_stop=lambda: False, **arguments) == plain


@pytest.mark.parametrize("source", [[[4, 5]], np.array([[4, 5]]), None])
@pytest.mark.usefixtures("unchecked")
def test_source_that_is_no_tensor_is_a_type_error(source):
    model = build(ModelConfig(width=8, layers=1, heads=2), 20).eval()
    with pytest.raises(TypeError, match="source must be a tensor of token ids or a DecoderState"):
        beam_search(model, source)


@pytest.mark.parametrize("name", ["beam_size", "n_best"])
def test_number_of_beams_that_is_not_an_integer_is_a_type_error(tiny_model, name, unchecked):
    with pytest.raises(TypeError, match=f"{name} must be an integer, but it is 2.0"):
        beam_search(*tiny_model, **{name: 2.0})


@pytest.mark.parametrize("name", ["min_length", "max_length"])
def test_length_limit_that_is_not_an_integer_is_a_type_error(name, unchecked):
    with pytest.raises(TypeError, match=f"{name} must be an integer, but it is 4.5"):
        LengthLimits(**{name: 4.5})
