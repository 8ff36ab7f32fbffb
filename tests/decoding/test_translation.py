import pytest
import torch

import regard.decoding.translation
from regard.config import ModelConfig, SearchConfig
from regard.data import Tokenizers, train_tokenizer
from regard.decoding.translation import SamplingConfig, Translation, line, translate
from regard.errors import RegardError
from regard.models import build

TEXTS = ["the cat sleeps", "a dog", "the dog sees the cat in the old garden", "", "a", "   "]


def make(**changed):
    torch.manual_seed(4)
    both = train_tokenizer(TEXTS * 5, "bpe", 300)
    settings = ModelConfig(width=12, layers=1, heads=2, ffn_width=16, dropout=0.0, **changed)
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
    (texts,) = translate(*made, TEXTS[:1], SearchConfig(beam_size=4), nbest=4)
    assert len({text.tokens for text in texts}) == 4
    assert [text.score for text in texts] == sorted((t.score for t in texts), reverse=True)


def test_as_many_beams_are_followed_as_translations_are_wanted(made):
    (few,) = translate(*made, TEXTS[:1], SearchConfig(beam_size=2), nbest=4)
    (as_many,) = translate(*made, TEXTS[:1], SearchConfig(beam_size=4), nbest=4)
    assert few == as_many and len(few) == 4


def test_of_an_empty_sentence_there_are_as_many_translations_as_of_others(made):
    assert [len(texts) for texts in translate(*made, TEXTS, nbest=3)] == [3] * len(TEXTS)


def test_spaces_around_a_sentence_are_no_part_of_it(made):
    spaced = translate(*made, [f" \t{text}\u3000 " for text in TEXTS])
    for one, two in zip(translate(*made, TEXTS), spaced, strict=True):
        assert one[0].tokens == two[0].tokens
    assert spaced[-1] == [Translation("", (), 0.0, 0.0)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"nbest": 0}, "nbest must be 1 or more, but it is 0"),
        ({"nbest": 3, "chance": SamplingConfig()}, "one translation is drawn by chance, not 3"),
        (
            {"chance": SamplingConfig(temperature=0.0)},
            "temperature must be above 0 and finite, not 0",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_refused(made, asked, said):
    with pytest.raises(RegardError, match=said):
        translate(*made, TEXTS, **asked)


def test_the_same_seed_draws_the_same(made):
    draws = [translate(*made, TEXTS, chance=SamplingConfig(seed=seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_no_group_of_sentences_repeats_the_draws_of_another(made, monkeypatch):
    monkeypatch.setattr("regard.decoding.batching.CELLS", 6)
    sentence = "the dog sees the cat in the old garden"
    drawn = [
        texts[0].text for texts in translate(*made, [sentence] * 8, chance=SamplingConfig(seed=1))
    ]
    assert len(set(drawn)) == 8
    assert drawn == [
        texts[0].text for texts in translate(*made, [sentence] * 8, chance=SamplingConfig(seed=1))
    ]


def test_small_groups_give_what_large_ones_give(made, monkeypatch):
    whole = translate(*made, TEXTS)
    monkeypatch.setattr("regard.decoding.batching.CELLS", 1)
    for one, two in zip(whole, translate(*made, TEXTS), strict=True):
        assert one[0].tokens == two[0].tokens


def sizes(made, monkeypatch, texts, cores, **asked):
    """Translate with so many cores, and tell how many sentences were translated together."""
    found, search = [], regard.decoding.translation._search

    def counted(model, sources, *rest):
        found.append(len(sources))
        return search(model, sources, *rest)

    monkeypatch.setattr(regard.decoding.translation, "_search", counted)
    monkeypatch.setattr("regard.decoding.batching.LEAST", 20)  # 4 tokens, with five beams
    monkeypatch.setattr(torch, "get_num_threads", lambda: cores)
    translate(*made, texts, **asked)
    return sorted(found)


@pytest.mark.parametrize(
    ("cores", "together"), [(1, [24]), (2, [12, 12]), (3, [8, 8, 8]), (100, [4] * 6)]
)
def test_a_few_sentences_are_shared_out_among_the_cores(made, monkeypatch, cores, together):
    assert len(made[1].source.encode("a")) == 1
    assert sizes(made, monkeypatch, ["a"] * 24, cores) == together


def test_what_is_drawn_does_not_depend_on_the_cores(made, monkeypatch):
    assert sizes(made, monkeypatch, ["a"] * 24, 4, chance=SamplingConfig(seed=1)) == [24]


def test_translations_are_told_on_one_line_each():
    one, two = (Translation(text, (), 0.0, -0.5) for text in ("a\nb", "c\u2028d"))
    assert line([one]) == "a b"
    assert line([one, two]) == "-0.5000\ta b\n-0.5000\tc d"


def test_how_many_are_done_is_told_if_wanted(made, monkeypatch, capsys):
    monkeypatch.setattr("regard.decoding.batching.CELLS", 1)
    monkeypatch.setattr("regard._support.progress.PLAIN_INTERVAL_SECONDS", 0.0)
    assert translate(*made, TEXTS) == translate(*made, TEXTS, told=True)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 4 and told[-1].startswith("4 of 4 sentences")


@pytest.mark.parametrize("chance", [None, SamplingConfig(seed=1)])
def test_a_model_with_few_positions_reads_and_writes_no_further(chance):
    model, tokenizers = make(positions="learned", max_positions=6)
    sentences = ["a dog", "the dog sees the cat in the old garden"]
    cut = tokenizers.source.decode(tokenizers.source.encode(sentences[1])[:6])
    with pytest.warns(
        UserWarning, match="at most 6 tokens.*but 1 of 2 have more; the rest of them"
    ):
        found = translate(model, tokenizers, sentences, chance=chance)
    assert max(len(texts[0].tokens) for texts in found) == 5  # and the start
    assert translate(model, tokenizers, [sentences[0], cut], chance=chance) == found
