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
def made(request):
    torch.manual_seed(4)
    both = train_tokenizer([SOURCE, TARGET], "characters", 300)
    score = "additive" if request.param == "recurrent" else "scaled_dot"
    settings = ModelConfig(
        kind=request.param, score=score, width=12, layers=2, heads=3, ffn_width=16
    )
    return build(settings, (len(both), len(both))).eval(), Tokenizers(both, both)


def test_a_trace_has_every_layer_and_head_and_rows_that_sum_to_one(made):
    trace = trace_translation(*made, SOURCE, TARGET, name="toy", title="a title")
    source, target = trace.tokens["source"], trace.tokens["target"]
    assert "".join(source.pieces).strip() == SOURCE
    assert (trace.model, trace.title) == ("toy", "a title")
    kinds = {look.kind for look in trace.maps}
    transformer = made[0].row_token == "input"
    assert kinds == ({"self", "causal", "cross"} if transformer else {"cross"})
    for look in trace.maps:
        np.testing.assert_allclose(look.weights.sum(-1), 1.0, atol=1e-5)
    assert len(target) == len(TARGET) + 2  # a space before the text, and start or end


def test_rows_are_named_by_the_word_that_looks(made):
    """A Transformer's row reads a token, a recurrent model's row writes it."""
    trace = trace_translation(*made, SOURCE, TARGET)
    target = trace.tokens["target"]
    if made[0].row_token == "input":
        assert target.special == (0,) and target.pieces[0] == "<start>"
    else:
        assert target.special == (len(target) - 1,) and target.pieces[-1] == "<end>"


def test_log_probabilities_are_those_of_the_forced_pass(made):
    model, tokenizers = made
    trace = trace_translation(model, tokenizers, SOURCE, TARGET)
    tokens = tokenizers.target.encode(TARGET)
    source = torch.tensor([tokenizers.source.encode(SOURCE)])
    with torch.no_grad():
        memory = model.encode(source, torch.tensor([source.shape[1]]))
        states = model.decode(torch.tensor([[1, *tokens]]), memory)
        scores = model.logits(states[0]).double().log_softmax(-1)
    wanted = [float(scores[n, token]) for n, token in enumerate(tokens)]
    found = [number for number in trace.tokens["target"].log_probs if number is not None]
    assert found[: len(tokens)] == pytest.approx(wanted, abs=1e-4)


def test_tokens_that_a_search_found_and_their_text_give_the_same(made):
    tokens = made[1].target.encode(TARGET)
    one, two = trace_translation(*made, SOURCE, TARGET), trace_translation(*made, SOURCE, tokens)
    assert one.to_json() == two.to_json()


def test_pieces_are_numbered_by_the_words_they_belong_to(made):
    told = merge_subwords(trace_translation(*made, SOURCE, TARGET))
    assert [piece.strip() for piece in told.tokens["source"].pieces] == SOURCE.split()
    words = [piece.strip() for piece in told.tokens["target"].pieces]
    assert words == (
        ["<start>", *TARGET.split()] if made[0].row_token == "input" else [*TARGET.split(), "<end>"]
    )


def test_given_words_and_links_are_kept(made):
    words = WordSpans([(0, 7), (8, 18)], [(0, 13), (14, 20)], [(0, 0), (1, 1)])
    trace = trace_translation(*made, SOURCE, TARGET, words=words)
    assert trace.gold == ((0, 0), (1, 1))
    assert set(trace.tokens["source"].words) == {0, 1}


def test_a_source_is_cut_to_what_the_model_has_positions_for(made):
    _, tokenizers = made
    settings = ModelConfig(
        width=12, layers=1, heads=2, ffn_width=16, positions="learned", max_positions=6
    )
    model = build(settings, tokenizers.vocab_sizes).eval()
    told = trace_translation(model, tokenizers, SOURCE, [5, 6])
    whole = tokenizers.source.convert_ids_to_tokens(tokenizers.source.encode(SOURCE))
    assert len(whole) > 6
    assert list(told.tokens["source"].pieces) == whole[:6]
