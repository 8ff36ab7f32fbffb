import numpy as np
import pytest
import torch

from regard.config import ModelConfig
from regard.data import Tokenizers, WordSpans, train_tokenizer
from regard.models import build
from regard.runs import trace_translation
from regard.trace import merge_subwords

SOURCE, TARGET = "the old cat sleeps", "le vieux chat dort !"


@pytest.fixture(scope="module", params=["transformer", "recurrent"])
def model_and_tokenizers(request):
    torch.manual_seed(4)
    both = train_tokenizer([SOURCE, TARGET], "characters", 300)
    score = "additive" if request.param == "recurrent" else "scaled_dot"
    settings = ModelConfig(
        kind=request.param, score=score, width=12, layers=2, heads=3, ffn_width=16
    )
    return build(settings, (len(both), len(both))).eval(), Tokenizers(both, both)


def test_trace_has_every_layer_and_head_with_rows_that_sum_to_one(model_and_tokenizers):
    trace = trace_translation(*model_and_tokenizers, SOURCE, TARGET, name="toy", title="a title")
    source, target = trace.tokens["source"], trace.tokens["target"]
    assert "".join(source.pieces).strip() == SOURCE
    assert (trace.model, trace.title) == ("toy", "a title")
    kinds = {look.kind for look in trace.maps}
    transformer = model_and_tokenizers[0].row_token == "input"
    assert kinds == ({"self", "causal", "cross"} if transformer else {"cross"})
    for look in trace.maps:
        np.testing.assert_allclose(look.weights.sum(-1), 1.0, atol=1e-5)
    assert len(target) == len(TARGET) + 2  # a space before the text, and start or end


def test_rows_are_named_by_the_input_token_or_by_the_predicted_one(model_and_tokenizers):
    trace = trace_translation(*model_and_tokenizers, SOURCE, TARGET)
    target = trace.tokens["target"]
    if model_and_tokenizers[0].row_token == "input":
        assert target.special == (0,) and target.pieces[0] == "<start>"
    else:
        assert target.special == (len(target) - 1,) and target.pieces[-1] == "<end>"


def test_log_probs_agree_with_a_separate_teacher_forced_pass(model_and_tokenizers):
    model, tokenizers = model_and_tokenizers
    trace = trace_translation(model, tokenizers, SOURCE, TARGET)
    tokens = tokenizers.target.encode(TARGET)
    source = torch.tensor([tokenizers.source.encode(SOURCE)])
    with torch.no_grad():
        memory = model.encode(source, torch.tensor([source.shape[1]]))
        states = model.decode(torch.tensor([[1, *tokens]]), memory)
        scores = model.logits(states[0]).double().log_softmax(-1)
    expected = [float(scores[n, token]) for n, token in enumerate(tokens)]
    log_probs = [number for number in trace.tokens["target"].log_probs if number is not None]
    assert log_probs[: len(tokens)] == pytest.approx(expected, abs=1e-4)


def test_target_as_token_ids_gives_the_same_trace_as_text(model_and_tokenizers):
    tokens = model_and_tokenizers[1].target.encode(TARGET)
    one, two = (
        trace_translation(*model_and_tokenizers, SOURCE, TARGET),
        trace_translation(*model_and_tokenizers, SOURCE, tokens),
    )
    assert one.to_json() == two.to_json()


def test_subwords_are_merged_to_words_split_at_spaces_and_punctuation(model_and_tokenizers):
    trace = merge_subwords(trace_translation(*model_and_tokenizers, SOURCE, TARGET))
    assert [piece.strip() for piece in trace.tokens["source"].pieces] == SOURCE.split()
    words = [piece.strip() for piece in trace.tokens["target"].pieces]
    assert words == (
        ["<start>", *TARGET.split()]
        if model_and_tokenizers[0].row_token == "input"
        else [*TARGET.split(), "<end>"]
    )


def test_given_words_and_gold_links_are_used(model_and_tokenizers):
    words = WordSpans([(0, 7), (8, 18)], [(0, 13), (14, 20)], [(0, 0), (1, 1)])
    trace = trace_translation(*model_and_tokenizers, SOURCE, TARGET, words=words)
    assert trace.gold == ((0, 0), (1, 1))
    assert set(trace.tokens["source"].words) == {0, 1}


def test_source_is_truncated_to_the_models_positions(model_and_tokenizers):
    _, tokenizers = model_and_tokenizers
    settings = ModelConfig(
        width=12, layers=1, heads=2, ffn_width=16, positions="learned", max_positions=6
    )
    model = build(settings, tokenizers.vocab_sizes).eval()
    trace = trace_translation(model, tokenizers, SOURCE, [5, 6])
    whole = tokenizers.source.convert_ids_to_tokens(tokenizers.source.encode(SOURCE))
    assert len(whole) > 6
    assert list(trace.tokens["source"].pieces) == whole[:6]
