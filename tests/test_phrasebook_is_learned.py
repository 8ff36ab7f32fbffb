"""The whole way, from phrases to words that look at their translations; minutes, not seconds."""

import pytest

from regard.data import Corpus
from regard.data.phrasebook import load_phrasebook
from regard.decoding import translate
from regard.demo import choose_head
from regard.evaluation import bleu, exact_match
from regard.runs import load
from regard.training import train

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]

BUDGET = {
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


def learned(book, out, *changes):
    train(
        Corpus.from_pairs("book", [pair.to_pair() for pair in book.train]),
        out,
        valid=Corpus.from_pairs("valid", [pair.to_pair() for pair in book.valid]),
        updates=[BUDGET, *changes],
        echo=lambda line: None,
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
    _, score, exact = learned(
        book, tmp_path / "run", RECURRENT, {"model": {"use_attention": False}}
    )
    assert score < bahdanau[1] - 10
    assert exact < bahdanau[2] - 0.1
