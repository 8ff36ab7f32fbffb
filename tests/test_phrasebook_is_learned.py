"""The whole way, from phrases to words that look at their translations; minutes, not seconds."""

import pytest

from regard.demo import choose_head
from regard.lesson import paired
from regard.run import load
from regard.text.corpus import Corpus
from regard.text.phrasebook import corpus
from regard.training import train
from regard.training.metrics import bleu, exact_match
from regard.translate import translate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]

BUDGET = {
    "data": {"pieces": 2000},
    "model": {"layers": 2, "width": 96, "hidden": 192, "dropout": 0.1},
    "train": {
        "steps": 700,
        "tokens": 2048,
        "rate": 3e-3,
        "warmup": 100,
        "schedule": "cosine",
        "validate_every": 350,
        "average": 1,
    },
}
RECURRENT = {
    "model": {"kind": "recurrent", "score": "additive", "layers": 1, "width": 96, "dropout": 0.1},
    "train": {"rate": 5e-3},
}


@pytest.fixture(scope="module")
def book():
    return corpus("fr", train=12_000, valid=300, test=300)


def learned(book, out, *changes):
    train(
        Corpus.of_pairs("book", paired(book.train)),
        out,
        valid=Corpus.of_pairs("valid", paired(book.valid)),
        changes=[BUDGET, *changes],
        say=lambda line: None,
    )
    run = load(out)
    found = translate(run.model, run.tokenizers, [phrase.source for phrase in book.test])
    texts, wanted = [best[0].text for best in found], [phrase.target for phrase in book.test]
    return run, bleu(texts, wanted), exact_match(texts, wanted)


@pytest.fixture(scope="module")
def bahdanau(book, tmp_path_factory):
    return learned(book, tmp_path_factory.mktemp("b") / "run", RECURRENT)


def test_a_transformer_translates_what_it_never_saw_and_its_looks_align(book, tmp_path):
    run, score, exact = learned(book, tmp_path / "run")
    assert score > 70 and exact > 0.4
    assert choose_head(run, book.valid[:100]).value < 0.4


def test_bahdanaus_model_does_too(book, bahdanau):
    run, score, exact = bahdanau
    assert score > 70 and exact > 0.4
    assert choose_head(run, book.valid[:100]).value < 0.4


def test_without_attention_the_same_model_does_clearly_worse(book, bahdanau, tmp_path):
    _, score, exact = learned(book, tmp_path / "run", RECURRENT, {"model": {"attends": False}})
    assert score < bahdanau[1] - 10
    assert exact < bahdanau[2] - 0.1
