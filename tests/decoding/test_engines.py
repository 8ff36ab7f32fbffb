"""The CTranslate2 engine agrees with torch, the reference, for every model it can represent."""

import numpy as np
import pytest
import torch

from regard.config import ModelConfig, SearchConfig
from regard.data import Tokenizers, train_tokenizer
from regard.decoding import SamplingConfig, TorchEngine, translate
from regard.decoding.engines import CTranslate2Engine, save_ctranslate2, unsupported_part
from regard.models import build

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


@pytest.mark.parametrize("length_penalty", [0.0, 1.3])
def test_n_best_translations_agree_with_torch(tiny_run, length_penalty):
    import regard
    from regard.runs.engines import converted_model

    run = regard.load(tiny_run, engine="torch")
    content = converted_model(run.model, run.tokenizers, None)
    engine = CTranslate2Engine(run.model, run.tokenizers, content)
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


def test_sentence_with_more_positions_than_converted_is_left_to_torch(
    tokenizers, tmp_path, monkeypatch
):
    from regard.decoding.engines import conversion

    monkeypatch.setattr(conversion, "MAX_POSITIONS", 60)  # the translations have up to 84
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
