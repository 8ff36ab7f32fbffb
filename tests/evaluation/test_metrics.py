from math import inf, isnan, log, nan

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.evaluation import (
    EvaluationReport,
    bleu,
    corpus_alignment_error_rate,
    corpus_scores,
    exact_match,
    is_chinese,
    perplexity,
)

REFERENCES = ["the cat sat on the mat .", "a dog runs in the park .", "two men are talking ."]
TRANSLATIONS = ["the cat sat on a mat .", "a dog is in the park .", "two men are talking ."]


def test_bleu_agrees_with_sacrebleu():
    expected = sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES]).score
    assert bleu(TRANSLATIONS, REFERENCES) == pytest.approx(expected)
    assert 0 < expected < 100


def test_perfect_translation_scores_100():
    assert bleu(REFERENCES, REFERENCES) == pytest.approx(100)
    for score in corpus_scores(REFERENCES, REFERENCES, samples=1):
        assert score.value == pytest.approx(100)


def test_chinese_is_tokenized_by_character():
    texts, references = ["我喜欢红苹果和茶"], ["我喜欢青苹果和茶"]
    expected = sacrebleu.corpus_bleu(texts, [references], tokenize="zh").score
    assert bleu(texts, references, chinese=True) == pytest.approx(expected)
    assert bleu(texts, references, chinese=True) > bleu(texts, references)
    score, _ = corpus_scores(texts, references, chinese=True, samples=1)
    assert "tok:zh" in score.signature


def test_scores_have_signature_and_confidence_interval():
    bleu_score, chrf_score = corpus_scores(TRANSLATIONS, REFERENCES, samples=20)
    assert (bleu_score.name, chrf_score.name) == ("BLEU", "chrF")
    assert bleu_score.value == pytest.approx(bleu(TRANSLATIONS, REFERENCES))
    expected = sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES]).score
    assert chrf_score.value == pytest.approx(expected)
    assert bleu_score.interval > 0 and chrf_score.interval > 0
    for part in ("case:mixed", "tok:13a", "bs:20", "version:"):
        assert part in bleu_score.signature


def test_bootstrap_intervals_are_deterministic():
    first, second = (corpus_scores(TRANSLATIONS, REFERENCES, samples=20) for _ in range(2))
    assert first == second


def test_no_interval_without_bootstrap():
    assert [score.interval for score in corpus_scores(TRANSLATIONS, REFERENCES, samples=1)] == [
        None,
        None,
    ]


def test_missing_reference_is_refused():
    message = "a reference for each translation, but there are 2 for 3"
    with pytest.raises(RegardError, match=message):
        corpus_scores(TRANSLATIONS, REFERENCES[:2])


def test_exact_match_is_the_fraction_of_equal_texts():
    assert exact_match(TRANSLATIONS, REFERENCES) == pytest.approx(1 / 3)
    assert exact_match(["a ", "A"], ["a", "a"]) == 0.0
    assert exact_match([], []) == 0.0
    with pytest.raises(RegardError, match="a reference for each translation"):
        exact_match(TRANSLATIONS, REFERENCES[:2])


@given(st.integers(1, 10**6))
def test_perplexity_of_a_uniform_guess_is_the_number_of_choices(choices):
    assert perplexity(log(choices)) == pytest.approx(choices)


def test_perplexity_of_a_huge_loss_is_finite():
    assert perplexity(0.0) == 1.0
    assert perplexity(1e9) < inf
    assert isnan(perplexity(nan))


def test_alignment_error_rate_counts_the_links_of_all_sentences_together():
    gold = [{(0, 0)}, {(0, 0), (1, 1), (2, 2)}]
    assert corpus_alignment_error_rate(gold, gold) == 0.0
    # 1 of 4 links is missing: 1 - 2 * 3 / (3 + 4)
    assert corpus_alignment_error_rate([set(), gold[1]], gold) == pytest.approx(1 / 7)
    # the same link in another sentence is another link
    assert corpus_alignment_error_rate(gold[::-1], gold) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["我喜欢茶。", "OK 好的"], True),
        (["the 茶 is good"], False),
        (["お茶がすきです"], False),
        (["123 !?"], False),
        ([], False),
    ],
)
def test_chinese_is_recognized_by_the_majority_of_letters(texts, expected):
    assert is_chinese(texts) == expected


def test_report_at_the_end_of_a_cell_is_its_table():
    pretty = pytest.importorskip("IPython.lib.pretty")
    report = EvaluationReport(*corpus_scores(TRANSLATIONS, REFERENCES, samples=1), 0.25, 3.5)
    assert pretty.pretty([report]) == f"[{report}]" and "exact match" in str(report)


@pytest.mark.parametrize("metric", [bleu, corpus_scores, exact_match])
def test_texts_without_a_reference_each_are_refused(metric):
    with pytest.raises(RegardError, match="a reference for each translation, but there are 1 for"):
        metric(["a", "b"], ["a"])


@pytest.mark.parametrize("metric", [bleu, corpus_scores])
def test_no_texts_have_no_bleu(metric):
    with pytest.raises(RegardError, match="there must be a translation to score, but there is non"):
        metric([], [])
