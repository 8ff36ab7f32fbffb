from math import inf, isnan, log, nan

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.evaluation import metrics

REFERENCES = ["the cat sat on the mat .", "a dog runs in the park .", "two men are talking ."]
TEXTS = ["the cat sat on a mat .", "a dog is in the park .", "two men are talking ."]


def test_bleu_is_what_sacrebleu_says():
    wanted = sacrebleu.corpus_bleu(TEXTS, [REFERENCES]).score
    assert metrics.bleu(TEXTS, REFERENCES) == pytest.approx(wanted)
    assert 0 < wanted < 100


def test_a_perfect_translation_scores_a_hundred():
    assert metrics.bleu(REFERENCES, REFERENCES) == pytest.approx(100)
    bleu, chrf = metrics.corpus_scores(REFERENCES, REFERENCES, samples=1)
    assert (bleu.value, chrf.value) == (pytest.approx(100), pytest.approx(100))


def test_chinese_is_parted_sign_by_sign():
    texts, references = ["我喜欢红苹果和茶"], ["我喜欢青苹果和茶"]
    wanted = sacrebleu.corpus_bleu(texts, [references], tokenize="zh").score
    assert metrics.bleu(texts, references, chinese=True) == pytest.approx(wanted)
    assert metrics.bleu(texts, references, chinese=True) > metrics.bleu(texts, references)
    assert (
        "tok:zh" in metrics.corpus_scores(texts, references, chinese=True, samples=1)[0].signature
    )


def test_scores_carry_signature_and_interval():
    bleu, chrf = metrics.corpus_scores(TEXTS, REFERENCES, samples=20)
    assert (bleu.name, chrf.name) == ("BLEU", "chrF")
    assert bleu.value == pytest.approx(metrics.bleu(TEXTS, REFERENCES))
    assert chrf.value == pytest.approx(sacrebleu.corpus_chrf(TEXTS, [REFERENCES]).score)
    assert bleu.interval > 0
    assert chrf.interval > 0
    for sign in ("case:mixed", "tok:13a", "bs:20", "version:"):
        assert sign in bleu.signature


def test_scores_are_the_same_each_time():
    assert metrics.corpus_scores(TEXTS, REFERENCES, samples=20) == metrics.corpus_scores(
        TEXTS, REFERENCES, samples=20
    )


def test_without_samples_there_is_no_interval():
    assert [one.interval for one in metrics.corpus_scores(TEXTS, REFERENCES, samples=1)] == [
        None,
        None,
    ]


def test_a_missing_reference_is_one_sentence():
    with pytest.raises(RegardError, match="a reference for each text, but there are 2 for 3"):
        metrics.corpus_scores(TEXTS, REFERENCES[:2])


def test_exact_match_is_a_share():
    assert metrics.exact_match(TEXTS, REFERENCES) == pytest.approx(1 / 3)
    assert metrics.exact_match(["a ", "A"], ["a", "a"]) == 0.0
    assert metrics.exact_match([], []) == 0.0
    with pytest.raises(ValueError, match="shorter"):
        metrics.exact_match(TEXTS, REFERENCES[:2])


@given(st.integers(1, 10**6))
def test_perplexity_counts_the_tokens_a_model_wavers_between(tokens):
    assert metrics.perplexity(log(tokens)) == pytest.approx(tokens)


def test_perplexity_of_a_hopeless_loss_is_a_number_still():
    assert metrics.perplexity(0.0) == 1.0
    assert metrics.perplexity(1e9) < inf
    assert isnan(metrics.perplexity(nan))


@pytest.mark.parametrize(
    ("texts", "chinese"),
    [
        (["我喜欢茶。", "OK 好的"], True),
        (["the 茶 is good"], False),
        (["お茶がすきです"], False),
        (["123 !?"], False),
        ([], False),
    ],
)
def test_chinese_is_told_by_most_of_its_letters(texts, chinese):
    assert metrics.is_chinese(texts) == chinese
