"""Training on the phrasebook reaches a quality, and attention an alignment; takes minutes."""

import pytest

from regard.analysis import (
    alignment_error_rate,
    best_alignment_head,
    extract_alignment,
    select_head,
)
from regard.data import Corpus
from regard.data.phrasebook import load_phrasebook
from regard.decoding import translate
from regard.demo import choose_head
from regard.evaluation import bleu, exact_match
from regard.runs import load
from regard.training import train

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]

SETTINGS = {
    "data": {"vocab_size": 2000},
    "model": {"layers": 2, "width": 96, "ffn_width": 192, "dropout": 0.1},
    "train": {
        "steps": 700,
        "batch_tokens": 2048,
        "learning_rate": 3e-3,
        "warmup": 100,
        "schedule": "cosine",
        "validate_every": 350,
        "average_checkpoints": 1,
    },
}
RECURRENT = {
    "model": {"kind": "recurrent", "score": "additive", "layers": 1, "width": 96, "dropout": 0.1},
    "train": {"learning_rate": 5e-3},
}


@pytest.fixture(scope="module")
def book():
    return load_phrasebook("fr", train=12_000, valid=300, test=300)


def train_and_evaluate(book, out, *updates):
    """Return the trained run, and BLEU and exact match on the test set."""
    train(
        Corpus.from_pairs("book", [pair.to_pair() for pair in book.train]),
        out,
        valid=Corpus.from_pairs("valid", [pair.to_pair() for pair in book.valid]),
        settings=[SETTINGS, *updates],
        echo=lambda line: None,
    )
    run = load(out)
    hypotheses = translate(run.model, run.tokenizers, [pair.source for pair in book.test])
    texts, references = [best[0].text for best in hypotheses], [pair.target for pair in book.test]
    return run, bleu(texts, references), exact_match(texts, references)


def assert_selected_heads_align(run, pairs):
    """Assert that heads selected without gold links align as well as the best one with them."""
    traces = [run.trace(pair.source, pair.target, words=pair.word_spans()) for pair in pairs]
    best = best_alignment_head(traces, [pair.links for pair in pairs])
    predicted, gold = [], []
    for n, (trace, pair) in enumerate(zip(traces, pairs, strict=True)):
        selected = select_head(trace)
        links = extract_alignment(trace, selected.layer, selected.head, symmetric=False)
        predicted += [(n, *link) for link in links]
        gold += [(n, *link) for link in pair.links]
    error_rate = alignment_error_rate(predicted, gold)
    assert error_rate < best.value + 0.02 and error_rate < best.values.mean() - 0.05


@pytest.fixture(scope="module")
def bahdanau(book, tmp_path_factory):
    return train_and_evaluate(book, tmp_path_factory.mktemp("b") / "run", RECURRENT)


def test_transformer_translates_unseen_sentences_and_a_head_aligns(book, tmp_path):
    run, score, exact = train_and_evaluate(book, tmp_path / "run")
    assert score > 70 and exact > 0.4
    assert choose_head(run, book.valid[:100]).value < 0.4
    assert_selected_heads_align(run, book.valid[:100])


def test_bahdanau_model_translates_unseen_sentences_and_a_head_aligns(book, bahdanau):
    run, score, exact = bahdanau
    assert score > 70 and exact > 0.4
    assert choose_head(run, book.valid[:100]).value < 0.4


def test_model_without_attention_is_clearly_worse(book, bahdanau, tmp_path):
    _, score, exact = train_and_evaluate(
        book, tmp_path / "run", RECURRENT, {"model": {"use_attention": False}}
    )
    assert score < bahdanau[1] - 10
    assert exact < bahdanau[2] - 0.1
