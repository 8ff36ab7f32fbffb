"""Translation of sentences."""

import pytest
import torch

import regard.decoding.translation
from helpers.toy_decoders import forced_log_probs
from regard import RegardError
from regard.config import ModelConfig, SearchConfig
from regard.data import Tokenizers, train_tokenizer
from regard.decoding import (
    DecodingCancelled,
    SamplingConfig,
    Translation,
    format_lines,
    translate,
)
from regard.models import build

SENTENCES = ["the cat sleeps", "a dog", "the dog sees the cat in the old garden", "", "a", "   "]


def make_translator(**changes):
    torch.manual_seed(4)
    tokenizer = train_tokenizer(SENTENCES * 5, "bpe", 300)
    config = ModelConfig(width=12, layers=1, heads=2, ffn_width=16, dropout=0.0, **changes)
    model = build(config, (len(tokenizer), len(tokenizer))).eval()
    with torch.no_grad():  # an untrained model finds all tokens about equally probable
        model.target_embedding.weight.mul_(3.0)
    return model, Tokenizers(tokenizer, tokenizer)


@pytest.fixture(autouse=True)
def short_translations(monkeypatch):
    """Keep the outputs of untrained models short: most of them never predict EOS."""
    monkeypatch.setattr("regard.decoding.translation.max_target_length", lambda _: 12)


@pytest.fixture(scope="module")
def translator():
    return make_translator()


def test_translation_does_not_depend_on_the_other_sentences(translator):
    together = translate(*translator, SENTENCES)
    for sentence, (best,) in zip(SENTENCES, together, strict=True):
        ((alone,),) = translate(*translator, [sentence])
        assert alone.text == best.text
        assert alone.score == pytest.approx(best.score, abs=1e-4)


def test_token_ids_are_translated_like_their_text(translator):
    tokens = [translator[1].source.encode(sentence.strip()) for sentence in SENTENCES]
    assert translate(*translator, tokens) == translate(*translator, SENTENCES)
    mixed = [SENTENCES[0], *tokens[1:]]
    assert translate(*translator, mixed) == translate(*translator, SENTENCES)


def test_empty_sentence_has_an_empty_translation(translator):
    assert translate(*translator, [""]) == [[Translation("", (), 0.0, (), 0.0)]]
    assert translate(*translator, []) == []


def test_translation_carries_the_log_probs_of_its_hypothesis(translator):
    model, tokenizers = translator
    config = SearchConfig(beam_size=4, length_penalty=0.6)
    results = translate(model, tokenizers, SENTENCES[:3], config, n_best=4)
    for sentence, translations in zip(SENTENCES, results, strict=False):
        source = torch.tensor([tokenizers.source.encode(sentence)])
        lengths = torch.tensor([source.shape[1]])
        for each in translations:
            expected = forced_log_probs(model, source, lengths, 0, each.tokens)
            assert each.token_log_probs == pytest.approx(expected, abs=1e-4)
            assert each.log_prob == pytest.approx(sum(expected), abs=1e-3)
            assert each.score == pytest.approx(each.log_prob / (len(each.tokens) + 1) ** 0.6)


def test_n_best_translations_are_distinct_and_best_first(translator):
    (results,) = translate(*translator, SENTENCES[:1], SearchConfig(beam_size=4), n_best=4)
    assert len({each.tokens for each in results}) == 4
    assert [each.score for each in results] == sorted((t.score for t in results), reverse=True)


def test_n_best_above_beam_size_enlarges_the_beam(translator):
    (few,) = translate(*translator, SENTENCES[:1], SearchConfig(beam_size=2), n_best=4)
    (many,) = translate(*translator, SENTENCES[:1], SearchConfig(beam_size=4), n_best=4)
    assert few == many and len(few) == 4


def test_empty_sentence_has_n_best_translations_as_others_do(translator):
    results = translate(*translator, SENTENCES, n_best=3)
    assert [len(translations) for translations in results] == [3] * len(SENTENCES)


def test_whitespace_around_a_sentence_is_ignored(translator):
    spaced = translate(*translator, [f" \t{sentence}\u3000 " for sentence in SENTENCES])
    for one, two in zip(translate(*translator, SENTENCES), spaced, strict=True):
        assert one[0].tokens == two[0].tokens
    assert spaced[-1] == [Translation("")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_best": 0}, "n_best must be 1 or more, but it is 0"),
        (
            {"n_best": 3, "sampling": SamplingConfig()},
            "n_best must be 1 with sampling, but it is 3; sample again with another seed",
        ),
    ],
)
def test_n_best_out_of_range_is_refused(translator, arguments, message):
    with pytest.raises(RegardError, match=message):
        translate(*translator, SENTENCES, **arguments)


def test_same_seed_gives_the_same_samples(translator):
    samples = [
        translate(*translator, SENTENCES, sampling=SamplingConfig(seed=seed)) for seed in (1, 1, 2)
    ]
    assert samples[0] == samples[1] != samples[2]


def test_batches_do_not_repeat_each_others_samples(translator, monkeypatch):
    monkeypatch.setattr("regard.decoding.batching.MAX_TOKENS", 6)  # a sentence per batch
    sentence = "the dog sees the cat in the old garden"

    def sampled():
        results = translate(*translator, [sentence] * 8, sampling=SamplingConfig(seed=1))
        return [each.text for (each,) in results]

    samples = sampled()
    assert len(set(samples)) == 8
    assert samples == sampled()


def test_small_batches_give_the_translations_of_large_ones(translator, monkeypatch):
    large = translate(*translator, SENTENCES)
    monkeypatch.setattr("regard.decoding.batching.MAX_TOKENS", 1)
    for one, two in zip(large, translate(*translator, SENTENCES), strict=True):
        assert one[0].tokens == two[0].tokens


def batch_sizes(translator, monkeypatch, threads, **arguments):
    """Translate 24 sentences of one token with some threads; return the sizes of the batches."""
    sizes, search = [], regard.decoding.translation._search

    def counted(model, sources, *rest):
        sizes.append(len(sources))
        return search(model, sources, *rest)

    monkeypatch.setattr(regard.decoding.translation, "_search", counted)
    monkeypatch.setattr("regard.decoding.batching.MIN_TOKENS", 20)  # 4 tokens, with five beams
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    translate(*translator, ["a"] * 24, **arguments)
    return sorted(sizes)


@pytest.mark.parametrize(
    ("threads", "sizes"), [(1, [24]), (2, [12, 12]), (3, [8, 8, 8]), (100, [4] * 6)]
)
def test_sentences_are_balanced_over_the_threads(translator, monkeypatch, threads, sizes):
    assert len(translator[1].source.encode("a")) == 1
    assert batch_sizes(translator, monkeypatch, threads) == sizes


def test_batches_of_sampling_do_not_depend_on_the_threads(translator, monkeypatch):
    sampling = SamplingConfig(seed=1)
    assert batch_sizes(translator, monkeypatch, 4, sampling=sampling) == [24]


def test_format_lines_keeps_each_translation_on_one_line():
    one, two = (Translation(text, score=-0.5) for text in ("a\nb", "c\u2028d"))
    assert format_lines([one]) == "a b"
    assert format_lines([one, two]) == "-0.5000\ta b\n-0.5000\tc d"


def test_progress_is_reported_on_stderr_if_asked_for(translator, monkeypatch, capsys):
    monkeypatch.setattr("regard.decoding.batching.MAX_TOKENS", 1)
    monkeypatch.setattr("regard._support.progress.PLAIN_INTERVAL_SECONDS", 0.0)
    assert translate(*translator, SENTENCES) == translate(*translator, SENTENCES, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and lines[-1].startswith("4 of 4 sentences")


@pytest.mark.parametrize("sampling", [None, SamplingConfig(seed=1)])
def test_source_and_translation_are_limited_to_the_models_positions(sampling):
    model, tokenizers = make_translator(positions="learned", max_positions=6)
    sentences = ["a dog", "the dog sees the cat in the old garden"]
    truncated = tokenizers.source.decode(tokenizers.source.encode(sentences[1])[:6])
    with pytest.warns(
        UserWarning, match="at most 6 tokens.*but 1 of 2 have more; the rest of them"
    ):
        results = translate(model, tokenizers, sentences, sampling=sampling)
    assert max(len(best.tokens) for (best,) in results) == 5  # and BOS
    assert translate(model, tokenizers, [sentences[0], truncated], sampling=sampling) == results


@pytest.mark.parametrize("sampling", [None, SamplingConfig(seed=1)])
def test_should_stop_cancels_a_translation_and_its_waiting_batches(
    translator, monkeypatch, sampling
):
    monkeypatch.setattr("regard.decoding.batching.MAX_TOKENS", 1)  # a sentence per batch
    (model, tokenizers), steps = translator, []
    step = model.step
    monkeypatch.setattr(model, "step", lambda *inputs: steps.append(1) or step(*inputs))
    with pytest.raises(DecodingCancelled):
        translate(
            model,
            tokenizers,
            SENTENCES * 50,
            sampling=sampling,
            should_stop=lambda: len(steps) >= 3,
        )
    assert len(steps) == 3  # of one thread; no other batch decoded anything
