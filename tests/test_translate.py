import pytest
import torch

from regard.config import Model, Search
from regard.models import build
from regard.text.tokenizer import Tokenizers
from regard.text.vocabulary import train
from regard.translate import Chance, Translation, line, translate

TEXTS = ["the cat sleeps", "a dog", "the dog sees the cat in the old garden", "", "a", "   "]


def make(**changed):
    torch.manual_seed(4)
    both = train(TEXTS * 5, "bpe", 300)
    settings = Model(width=12, layers=1, heads=2, hidden=16, dropout=0.0, **changed)
    model = build(settings, (len(both), len(both))).eval()
    with torch.no_grad():  # a fresh model finds everything alike likely
        model.target.weight.mul_(3.0)
    return model, Tokenizers(both, both)


@pytest.fixture(scope="module")
def made():
    return make()


def test_each_sentence_is_translated_as_if_it_were_alone(made):
    together = translate(*made, TEXTS)
    for text, texts in zip(TEXTS, together, strict=True):
        (alone,) = translate(*made, [text])
        assert alone[0].text == texts[0].text
        assert alone[0].score == pytest.approx(texts[0].score, abs=1e-4)


def test_an_empty_sentence_has_an_empty_translation(made):
    assert translate(*made, [""]) == [[Translation("", (), 0.0, 0.0)]]
    assert translate(*made, []) == []


def test_several_translations_are_distinct_and_best_first(made):
    (texts,) = translate(*made, TEXTS[:1], Search(beams=4), nbest=4)
    assert len({text.tokens for text in texts}) == 4
    assert [text.score for text in texts] == sorted((t.score for t in texts), reverse=True)


def test_the_same_seed_draws_the_same(made):
    draws = [translate(*made, TEXTS, chance=Chance(seed=seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_small_groups_give_what_large_ones_give(made, monkeypatch):
    whole = translate(*made, TEXTS)
    monkeypatch.setattr("regard.translate.CELLS", 1)
    for one, two in zip(whole, translate(*made, TEXTS), strict=True):
        assert one[0].tokens == two[0].tokens


def test_translations_are_told_on_one_line_each():
    one, two = (Translation(text, (), 0.0, -0.5) for text in ("a\nb", "c\u2028d"))
    assert line([one]) == "a b"
    assert line([one, two]) == "-0.5000\ta b\n-0.5000\tc d"


def test_how_many_are_done_is_told_if_wanted(made, monkeypatch, capsys):
    monkeypatch.setattr("regard.translate.CELLS", 1)
    monkeypatch.setattr("regard.counting.PLAIN_EVERY", 0.0)
    assert translate(*made, TEXTS) == translate(*made, TEXTS, told=True)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 5 and told[-1].startswith("5 of 5 sentences")


@pytest.mark.parametrize("chance", [None, Chance(seed=1)])
def test_a_model_with_few_positions_reads_and_writes_no_further(chance):
    model, tokenizers = make(positions="learned", longest=6)
    sentences = ["a dog", "the dog sees the cat in the old garden"]
    cut = tokenizers.source.decode(tokenizers.source.encode(sentences[1])[:6])
    with pytest.warns(
        UserWarning, match="at most 6 tokens.*but 1 of 2 have more; the rest of them"
    ):
        found = translate(model, tokenizers, sentences, chance=chance)
    assert max(len(texts[0].tokens) for texts in found) == 5  # and the start
    assert translate(model, tokenizers, [sentences[0], cut], chance=chance) == found
