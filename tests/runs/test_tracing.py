import numpy as np
import pytest
import torch

from regard.config import ModelConfig
from regard.data import Tokenizers, WordSpans, train_tokenizer
from regard.errors import RegardError
from regard.models import Transformer, build
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
    return build(settings, len(both)).eval(), Tokenizers(both, both)


def test_trace_has_every_layer_and_head_with_rows_that_sum_to_one(model_and_tokenizers):
    trace = trace_translation(*model_and_tokenizers, SOURCE, TARGET, name="toy", title="a title")
    source, target = trace.tokens["source"], trace.tokens["target"]
    assert "".join(source.pieces).strip() == SOURCE
    assert (trace.model, trace.title) == ("toy", "a title")
    kinds = {m.kind for m in trace.maps}
    is_transformer = isinstance(model_and_tokenizers[0], Transformer)
    assert kinds == ({"self", "causal", "cross"} if is_transformer else {"cross"})
    for attention_map in trace.maps:
        np.testing.assert_allclose(attention_map.weights.sum(-1), 1.0, atol=1e-5)
    assert len(target) == len(TARGET) + 2  # a space before the text, and the end


def test_rows_are_named_by_the_token_written_there(model_and_tokenizers):
    trace = trace_translation(*model_and_tokenizers, SOURCE, TARGET)
    written, read = trace.tokens["target"], trace.tokens["decoder_input"]
    assert written.special == (len(written) - 1,) and written.pieces[-1] == "<end>"
    assert read.special == (0,) and read.pieces[0] == "<start>"
    assert written.pieces[:-1] == read.pieces[1:] and written.words[:-1] == read.words[1:]
    for attention_map in trace.maps:
        queries, inputs = attention_map.queries, attention_map.query_inputs
        expected = {
            "self": ("source", None),
            "causal": ("decoder_input", None),
            "cross": ("target", "decoder_input"),
        }
        assert (queries, inputs) == expected[attention_map.kind]


def test_row_of_a_token_is_the_decoding_step_that_writes_it(model_and_tokenizers):
    model, tokenizers = model_and_tokenizers
    trace = trace_translation(model, tokenizers, SOURCE, TARGET)
    tokens = tokenizers.target.encode(TARGET)
    source = torch.tensor([tokenizers.source.encode(SOURCE)])
    for written in (0, 2, len(tokens)):  # after `written` tokens, the last one is the end
        read = torch.tensor([[1, *tokens[:written]]])
        with torch.no_grad():
            _, weights = model.forward_with_weights(source, torch.tensor([source.shape[1]]), read)
        for m, expected in zip(trace.layers("cross"), weights.cross, strict=True):
            np.testing.assert_allclose(m.weights[:, written], expected[0, :, -1], atol=1e-5)


def test_title_is_the_sentence_and_its_translation(model_and_tokenizers):
    trace = trace_translation(*model_and_tokenizers, SOURCE, TARGET)
    assert trace.title == f"{SOURCE} → {TARGET}"


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
    expected.append(float(scores[-1, 2]))  # of the end token
    assert trace.tokens["target"].log_probs == pytest.approx(expected, abs=1e-4)


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
    assert words == [*TARGET.split(), "<end>"]
    words = [piece.strip() for piece in trace.row_tokens(trace.layers("cross")[0], "input").pieces]
    assert words == ["<start>", *TARGET.split()]


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


@pytest.mark.parametrize("token", [-1, 99_999])
def test_token_beyond_the_vocabulary_is_refused(model_and_tokenizers, token):
    model, tokenizers = model_and_tokenizers
    size = len(tokenizers.target)
    message = f"target must be token ids from 0 to {size - 1}, but one is {token}"
    with pytest.raises(RegardError, match=message):
        trace_translation(model, tokenizers, "a cat", [5, token])
