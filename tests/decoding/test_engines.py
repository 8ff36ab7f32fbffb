"""The CTranslate2 engine agrees with torch, the reference, for every model it can represent."""

import numpy as np
import pytest
import torch

from regard.config import ModelConfig, SearchConfig
from regard.data import Tokenizers, train_tokenizer
from regard.decoding import DecodingCancelled, SamplingConfig, TorchEngine, translate
from regard.decoding.engines import (
    CTranslate2Engine,
    max_batch_size,
    save_ctranslate2,
    unsupported_part,
)
from regard.errors import RegardError
from regard.models import build
from regard.positions import Rotary

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra fast is not installed")

pytestmark = pytest.mark.usefixtures("unchecked")

SENTENCES = ["the cat sees a dog", "a bird", "dog dog cat the a bird sees", ""]
CONFIGS = {
    "post-norm": {},
    "pre-norm": {"norm": "pre"},
    "learned positions": {"positions": "learned"},
    "rotary positions": {"positions": "rotary"},
    "one key head": {"key_heads": 1},
    "two key heads, rotary": {"key_heads": 2, "norm": "pre", "positions": "rotary"},
    "dot": {"score": "dot"},
    "separate output": {"tie_output": False},
    "separate embeddings": {"share_embeddings": False},
}


@pytest.fixture
def tokenizers():
    tokenizer = train_tokenizer(["the cat sees a dog and the bird"] * 3, vocab_size=290)
    return Tokenizers(tokenizer, tokenizer)


def make_model(tokenizers, **config):
    """Build an untrained model whose predictions differ, and which ends after some words."""
    config = ModelConfig(width=32, layers=2, heads=4, ffn_width=48, **config)
    model = build(config, tokenizers.vocab_sizes).eval()
    for name, parameter in model.named_parameters():
        parameter.data *= 1.7
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.1)
    return model


def convert(model, tokenizers, folder, **options):
    folder.mkdir(exist_ok=True)
    save_ctranslate2(model, tokenizers, folder, **options)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def make_engine(model, tokenizers, folder, **options):
    return CTranslate2Engine(model, tokenizers, convert(model, tokenizers, folder), **options)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_greedy_translations_and_log_probs_agree_with_torch(tokenizers, tmp_path, config):
    model = make_model(tokenizers, **config)
    engine = make_engine(model, tokenizers, tmp_path)
    greedy = SearchConfig(beam_size=1)
    expected = translate(model, tokenizers, SENTENCES, greedy)
    actual = translate(model, tokenizers, SENTENCES, greedy, engine=engine)
    for (own,), (reference,) in zip(actual, expected, strict=True):
        assert (own.text, own.tokens) == (reference.text, reference.tokens)
        np.testing.assert_allclose(own.token_log_probs, reference.token_log_probs, atol=2e-4)
        assert own.log_prob == pytest.approx(sum(own.token_log_probs))
        assert own.score == pytest.approx(reference.score, abs=1e-3)


def test_gelu_model_agrees_with_torch(tokenizers, tmp_path):
    model = make_model(tokenizers, norm="pre")
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.feed_forward.activation = "gelu"
    check_greedy(model, tokenizers, tmp_path)


def test_model_with_separate_tokenizers_agrees_with_torch(tokenizers, tmp_path):
    target = train_tokenizer(["le chat voit un chien et un oiseau bleu"] * 3, vocab_size=297)
    separate = Tokenizers(tokenizers.source, target)
    assert len(set(separate.vocab_sizes)) == 2
    check_greedy(make_model(separate), separate, tmp_path)


def check_greedy(model, tokenizers, folder):
    engine = make_engine(model, tokenizers, folder)
    arguments = (model, tokenizers, SENTENCES, SearchConfig(beam_size=1))
    for (own,), (reference,) in zip(
        translate(*arguments, engine=engine), translate(*arguments), strict=True
    ):
        assert (own.text, own.tokens) == (reference.text, reference.tokens)
        np.testing.assert_allclose(own.token_log_probs, reference.token_log_probs, atol=2e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize(
    "lengths",
    [{"min_length": 12}, {"max_length": 5}, {"min_length": 8, "max_length": 9}, {"max_length": 70}],
)
def test_lengths_agree_with_torch(beam_size, lengths):
    run, engine = load_engine("demo-model")
    sentences = ["The white cat broke the cup.", "The dog sleeps.", "I like it."]
    arguments = (run.model, run.tokenizers, sentences, SearchConfig(beam_size=beam_size))
    unlimited = [len(best.tokens) for best, *_ in translate(*arguments)]
    assert min(unlimited) < 8 and 5 < max(unlimited) < 12  # the limits matter
    expected = translate(*arguments, n_best=beam_size, **lengths)
    actual = translate(*arguments, n_best=beam_size, **lengths, engine=engine)
    for own, reference in zip(actual, expected, strict=True):
        assert [each.tokens for each in own] == [each.tokens for each in reference]
        found = {len(each.tokens) for each in own}
        assert min(found) >= lengths.get("min_length", 0)
        assert max(found) <= lengths.get("max_length", max(found))
        np.testing.assert_allclose(
            [each.score for each in own], [each.score for each in reference], atol=1e-3
        )


def load_engine(path):
    """Load a run with torch, and a CTranslate2 engine for its model."""
    import regard
    from regard.runs.engines import converted_model

    run = regard.load(path, engine="torch")
    content = converted_model(run.model, run.tokenizers, None)
    return run, CTranslate2Engine(run.model, run.tokenizers, content)


def test_model_with_few_positions_refuses_a_greater_min_length(tokenizers, tmp_path):
    model = make_model(tokenizers, positions="learned", max_positions=12)
    message = "min_length must be at most 11 tokens, as many as the model has positions, but it is"
    for engine in (None, make_engine(model, tokenizers, tmp_path)):
        with pytest.raises(ValueError, match=message):
            translate(model, tokenizers, ["a bird"], min_length=12, engine=engine)


@pytest.mark.parametrize(
    "options", [{"temperature": 0.7, "top_k": 4}, {"temperature": 1.4, "top_p": 0.6}]
)
def test_samples_without_seed_have_the_probabilities_of_torch(
    tokenizers, tmp_path, monkeypatch, options
):
    model = make_model(tokenizers)
    engine = make_engine(model, tokenizers, tmp_path)
    source = torch.tensor([tokenizers.source.encode("a bird")])
    state = model.init_state(model.encode(source, torch.tensor([source.shape[1]])))
    logits = model.logits(model.step(torch.tensor([[1]]), state)[0])[0, 0]
    logits[[0, 1]] = -torch.inf  # padding and BOS
    probs, order = (logits / options["temperature"]).softmax(0).sort(descending=True)
    is_kept = torch.arange(len(probs)) < options.get("top_k", len(probs))
    is_kept &= probs.cumsum(0) - probs < options.get("top_p", 1)
    kept = (probs * is_kept / (probs * is_kept).sum())[is_kept]
    expected = dict(zip(order[is_kept].tolist(), kept.tolist(), strict=True))
    assert 2 < len(expected) < 20
    monkeypatch.setattr(TorchEngine, "translate_batch", None)  # not called
    results = translate(
        model,
        tokenizers,
        ["a bird"] * 4000,
        sampling=SamplingConfig(**options),
        max_length=1,
        engine=engine,
    )
    tokens = [best.tokens[0] if best.tokens else 2 for (best,) in results]
    assert set(tokens) <= set(expected)
    for token, probability in expected.items():  # five standard deviations
        deviation = (probability * (1 - probability) / 4000) ** 0.5
        assert tokens.count(token) / 4000 == pytest.approx(probability, abs=5 * deviation + 1e-4)


@pytest.mark.parametrize("options", [{"seed": 3}, {"top_k": 9, "top_p": 0.8}])
def test_samples_that_ctranslate2_draws_differently_are_left_to_torch(
    tokenizers, tmp_path, monkeypatch, options
):
    model = make_model(tokenizers)
    engine = make_engine(model, tokenizers, tmp_path)
    searched = []
    monkeypatch.setattr(
        TorchEngine, "translate_batch", lambda self, batch, *_: searched.append(batch) or [[]]
    )
    translate(model, tokenizers, ["a cat"], sampling=SamplingConfig(**options), engine=engine)
    assert len(searched) == 1


@pytest.mark.parametrize("beam_size", [1, 4])
def test_cancelled_translation_raises(tokenizers, tmp_path, beam_size):
    model = make_model(tokenizers)
    engine = make_engine(model, tokenizers, tmp_path)
    calls = []

    def should_stop():
        calls.append(1)
        return len(calls) > (3 if beam_size == 1 else 1)

    config = SearchConfig(beam_size=beam_size)
    # greedy search is stopped at the third token; a beam search is finished first
    arguments = (model, tokenizers, ["dog dog cat the a bird sees"], config)
    with pytest.raises(DecodingCancelled):
        translate(*arguments, min_length=40, engine=engine, should_stop=should_stop)
    assert len(calls) == (5 if beam_size == 1 else 2)  # the last one when it has ended


@pytest.mark.parametrize("length_penalty", [0.0, 1.3])
def test_n_best_translations_agree_with_torch(tiny_run, length_penalty):
    run, engine = load_engine(tiny_run)
    config = SearchConfig(beam_size=4, length_penalty=length_penalty)
    sentences = ["The old cat sees the dog.", "A red boat."]
    arguments = (run.model, run.tokenizers, sentences, config)
    expected = translate(*arguments, n_best=3)
    actual = translate(*arguments, n_best=3, engine=engine)
    for own, reference in zip(actual, expected, strict=True):
        assert [each.text for each in own] == [each.text for each in reference]
        np.testing.assert_allclose(
            [each.score for each in own], [each.score for each in reference], atol=1e-3
        )


def test_prefix_and_samples_are_those_of_torch(tokenizers, tmp_path):
    model = make_model(tokenizers)
    engine = make_engine(model, tokenizers, tmp_path, quantization="int8")
    sampling, prefixes = SamplingConfig(seed=3), ["the ca"] * len(SENTENCES)
    for options in ({"sampling": sampling}, {"prefixes": prefixes}):
        expected = translate(model, tokenizers, SENTENCES, **options)
        assert translate(model, tokenizers, SENTENCES, **options, engine=engine) == expected


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_cpu_decodes_and_scores_small_batches_together(
    tokenizers, tmp_path, monkeypatch, quantization
):
    sizes, translator = [], ctranslate2.Translator

    class Recorder:
        def __init__(self, *arguments, **options):
            self._translator = translator(*arguments, **options)

        def __getattr__(self, name):
            def call(*arguments, max_batch_size, **options):
                sizes.append((name, max_batch_size))
                method = getattr(self._translator, name)
                return method(*arguments, max_batch_size=max_batch_size, **options)

            return call

    monkeypatch.setattr(ctranslate2, "Translator", Recorder)
    model = make_model(tokenizers)
    engine = make_engine(model, tokenizers, tmp_path, quantization=quantization)
    sentences = [f"a {'cat ' * (n % 5)}bird" for n in range(100)]
    config = SearchConfig(beam_size=1)
    translations = translate(model, tokenizers, sentences, config, engine=engine, max_length=9)
    assert [len(best.token_log_probs) - 1 for (best,) in translations] == [
        len(best.tokens) for (best,) in translations
    ]
    size = max_batch_size(quantization)
    assert 0 < size < 100
    assert set(sizes) == {("translate_batch", size), ("score_batch", size)}


def test_sentence_with_more_positions_than_converted_is_left_to_torch(
    tokenizers, tmp_path, monkeypatch
):
    from regard.decoding.engines import ctranslate2_conversion

    monkeypatch.setattr(
        ctranslate2_conversion, "MAX_POSITIONS", 60
    )  # the translations have up to 84
    model = make_model(tokenizers)
    engine = make_engine(model, tokenizers, tmp_path)
    searched = []
    monkeypatch.setattr(
        TorchEngine, "translate_batch", lambda self, batch, *_: searched.append(batch) or []
    )
    with pytest.raises(ValueError, match="zip"):
        translate(model, tokenizers, ["the cat"], engine=engine)
    assert searched


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"positions": "alibi"}, "ALiBi positions in the encoder"),
        ({"score": "cosine"}, "the score Cosine"),
        ({"kind": "recurrent", "score": "additive"}, "a RecurrentModel"),
    ],
)
def test_part_that_cannot_be_represented_is_named(tokenizers, tmp_path, config, part):
    model = make_model(tokenizers, **config)
    assert unsupported_part(model) == part
    with pytest.raises(ValueError, match=f"CTranslate2 cannot represent {part}"):
        save_ctranslate2(model, tokenizers, tmp_path)


def change_activation(model):
    model.decoder.layers[1].feed_forward.activation = "gelu"


def change_rotation(model):
    model.encoder.layers[1].attention.positions = Rotary(8, base=100.0)


def change_epsilon(model):
    model.encoder.layers[0].feed_forward_residual.norm.eps = 1e-3


@pytest.mark.parametrize("change", [change_activation, change_rotation, change_epsilon])
def test_layers_that_differ_are_not_converted(tokenizers, tmp_path, change):
    model = make_model(tokenizers, positions="rotary")
    assert unsupported_part(model) is None
    change(model)
    with pytest.raises(RegardError, match="cannot represent layers with different norms, activ"):
        save_ctranslate2(model, tokenizers, tmp_path)


def test_final_norm_of_one_side_is_not_converted(tokenizers, tmp_path):
    model = make_model(tokenizers, norm="pre")
    model.decoder.norm = None
    with pytest.raises(RegardError, match="cannot represent a final norm of the encoder or the"):
        save_ctranslate2(model, tokenizers, tmp_path)


@pytest.mark.parametrize("head", [(0, 2), (1, 0), (-1, 3)])
def test_alignment_head_is_what_ctranslate2_returns(tokenizers, tmp_path, head):
    model = make_model(tokenizers)
    convert(model, tokenizers, tmp_path, alignment_head=head)
    translator = ctranslate2.Translator(str(tmp_path))
    source, target = (tokenizers.source.encode(text) for text in SENTENCES[:2])
    result = translator.translate_batch(
        [tokenizers.source.convert_ids_to_tokens(source)],
        [tokenizers.target.convert_ids_to_tokens(target)],
        max_decoding_length=len(target),
        return_attention=True,
    )[0]
    ids = torch.tensor([[1, *target[:-1]]])
    _, weights = model.forward_with_weights(
        torch.tensor([source]), torch.tensor([len(source)]), ids
    )
    expected = weights.cross[head[0]][0, head[1]].detach().numpy()
    np.testing.assert_allclose(np.array(result.attention[0]), expected, atol=1e-5)
