"""Translation of sentences."""

import pytest
import torch

from helpers.toy_decoders import forced_log_probs
from regard import RegardError
from regard.config import ModelConfig, SearchConfig
from regard.data import Tokenizers, train_tokenizer
from regard.decoding import (
    DecodingCancelled,
    SamplingConfig,
    TorchEngine,
    Translation,
    TranslationOptions,
    sentence_batches,
    translate,
)
from regard.models import build

SENTENCES = ["the cat sleeps", "a dog", "the dog sees the cat in the old garden", "", "a", "   "]


def make_translator(**changes):
    torch.manual_seed(4)
    tokenizer = train_tokenizer(SENTENCES * 5, "bpe", 300)
    config = ModelConfig(width=12, layers=1, heads=2, ffn_width=16, dropout=0.0, **changes)
    model = build(config, len(tokenizer)).eval()
    with torch.no_grad():  # an untrained model finds all tokens about equally probable
        model.target_embedding.weight.mul_(3.0)
    return model, Tokenizers(tokenizer, tokenizer)


@pytest.fixture(autouse=True)
def short_translations(monkeypatch):
    """Keep the outputs of untrained models short: most of them never predict EOS."""
    monkeypatch.setattr("regard.decoding.sentences.max_target_length", lambda _: 12)


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


def test_sentences_of_a_generator_are_translated_like_those_of_a_list(translator):
    generated = translate(*translator, (sentence for sentence in SENTENCES))
    assert generated == translate(*translator, SENTENCES)


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


def test_n_best_beyond_the_largest_beam_is_refused_by_name():
    with pytest.raises(RegardError, match="^n_best must be at most 1000000, but it is 1000001$"):
        SearchConfig().with_n_best(1_000_001)


def test_n_best_above_the_default_beam_size_enlarges_the_beam(translator):
    (default,) = translate(*translator, SENTENCES[:1], n_best=7)
    (given,) = translate(*translator, SENTENCES[:1], SearchConfig(beam_size=7), n_best=7)
    assert default == given and len(default) == 7


def test_n_best_above_a_given_beam_size_is_refused(translator):
    message = "n_best must be at most 2, the beam size, but it is 4; give beam_size=4, too"
    with pytest.raises(RegardError, match=message):
        translate(*translator, SENTENCES[:1], SearchConfig(beam_size=2), n_best=4)


def test_empty_sentence_has_n_best_translations_as_others_do(translator):
    results = translate(*translator, SENTENCES, n_best=3)
    assert [len(translations) for translations in results] == [3] * len(SENTENCES)


def test_single_string_is_refused(translator):
    with pytest.raises(TypeError, match="sentences must be a list of sentences, .* of type str"):
        translate(*translator, SENTENCES[0])


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


@pytest.mark.parametrize("sampling", [None, SamplingConfig(seed=1)])
def test_results_are_bitwise_equal_on_any_number_of_threads(translator, monkeypatch, sampling):
    monkeypatch.setattr("regard.decoding.batching.MIN_TOKENS", 20)
    before = torch.get_num_threads()
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append(translate(*translator, SENTENCES * 9, sampling=sampling))
    torch.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_samples_of_a_sentence_follow_from_seed_and_number(translator, monkeypatch):
    """They do not depend on the other sentences of the batch, nor on where a block begins."""
    model, tokenizers = translator
    options = TranslationOptions(sampling=SamplingConfig(seed=3))
    sentences = [*SENTENCES[:3], *SENTENCES[:3]]

    def sampled(first, sentences):
        batches = sentence_batches(model, tokenizers, sentences, options, first=first)
        samples = {}
        for batch in batches:
            results = TorchEngine(model, tokenizers).translate_batch(batch, options)
            samples |= dict(zip(batch.numbers, [best.tokens for (best,) in results], strict=True))
        return samples

    whole = sampled(0, sentences)
    assert whole == sampled(0, sentences[:2]) | sampled(2, sentences[2:])
    assert whole[0] != whole[3]  # the same sentence with another number


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


@pytest.mark.parametrize("sampling", [None, SamplingConfig(seed=1), SamplingConfig(top_k=3)])
@pytest.mark.parametrize("prefix", ["the ca", "the cat", "the cat ", "猫 sees", "a.", "d"])
def test_translation_begins_with_its_prefix_and_has_the_models_log_probs(
    translator, prefix, sampling
):
    model, tokenizers = translator
    prefixes = ["", prefix, "the old dog is"]
    results = translate(model, tokenizers, SENTENCES[:3], sampling=sampling, prefixes=prefixes)
    for sentence, own, (best,) in zip(SENTENCES, prefixes, results, strict=False):
        assert best.text.startswith(own)
        source = torch.tensor([tokenizers.source.encode(sentence)])
        expected = forced_log_probs(model, source, torch.tensor([source.shape[1]]), 0, best.tokens)
        assert best.token_log_probs == pytest.approx(expected, abs=1e-4)


def test_prefix_of_one_sentence_leaves_the_others_unchanged(translator):
    free = translate(*translator, SENTENCES[:3])
    mixed = translate(*translator, SENTENCES[:3], prefixes=["", "the dog", ""])
    assert [mixed[0][0].tokens, mixed[2][0].tokens] == [free[0][0].tokens, free[2][0].tokens]


def test_every_n_best_translation_begins_with_the_prefix(translator):
    (results,) = translate(*translator, SENTENCES[:1], n_best=4, prefixes=["the c"])
    assert all(each.text.startswith("the c") for each in results)
    assert len({each.tokens for each in results}) == 4


def test_prefix_longer_than_the_models_positions_is_refused():
    model, tokenizers = make_translator(positions="learned", max_positions=6)
    with pytest.raises(RegardError, match="prefix must have at most 5 tokens.* it may take 9"):
        translate(model, tokenizers, ["a"], prefixes=["the cat sleeps a lot"])


def test_prefixes_must_be_as_many_as_sentences(translator):
    with pytest.raises(RegardError, match="one for each of 3 sentences, but there are 1"):
        translate(*translator, SENTENCES[:3], prefixes=["a"])


def test_str_of_a_translation_is_its_text():
    assert str(Translation("le chat", (5, 6))) == "le chat"


def test_translations_at_a_prompt_are_short():
    """A list of alternatives is read by its texts; scores of every token would bury them."""
    best = Translation("le chat", (5, 6), -1.25, (-0.25,) * 3, score=-0.5)
    assert repr([best, Translation("")]) == (
        "[<Translation 'le chat': log_prob=-1.25>, <Translation '': log_prob=0>]"
    )
