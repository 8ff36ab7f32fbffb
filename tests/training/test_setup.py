from random import Random

import pytest

from helpers.tiny_corpus import corpus, pairs
from regard.config import RunConfig
from regard.data import Corpus, Pair
from regard.errors import RegardError
from regard.runs import RunFolder
from regard.training.setup import claim, learn, prepare, settle

ORIGIN = {"texts": ["t"], "fingerprints": ["f"], "pairs": 3}


def test_settings_fit_the_size_and_later_changes_win():
    settings, count = settle(
        corpus(), [{"train": {"learning_rate": 0.5}}, {"train": {"learning_rate": 0.25}}]
    )
    assert count == 225
    assert (settings.model.layers, settings.data.vocab_size) == (3, 4000)  # fewer than 10,000 pairs
    assert settings.train.learning_rate == 0.25


def test_an_empty_corpus_is_refused():
    with pytest.raises(RegardError, match="nothing must have pairs, but there are none"):
        settle(Corpus.from_pairs("nothing", []), [])


def made(tmp_path, texts, valid=None, **data):
    settings = RunConfig.from_dict({"data": {"vocab_size": 400, **data}})
    return prepare(RunFolder(tmp_path), settings, texts, valid, sum(1 for _ in texts.read()))


def test_held_out_pairs_are_not_learned_not_even_under_another_number(tmp_path):
    twice = Corpus.from_pairs("twice", pairs() * 2)
    prepared = made(tmp_path, twice, validation_pairs=15)
    sources = [
        {prepared.tokenizers.source.decode(part.pair(n)[0].tolist()) for n in range(len(part))}
        for part in (prepared.train, prepared.valid)
    ]
    assert len(prepared.valid) == 15
    assert not sources[0] & sources[1]


def test_given_validation_pairs_are_taken_and_nothing_is_held_out(tmp_path):
    valid = Corpus.from_pairs("valid", [Pair("the old boat", "le vieux bateau")])
    prepared = made(tmp_path, corpus(), valid)
    assert (len(prepared.train), len(prepared.valid)) == (225, 1)


def test_what_is_learned_is_cut_by_chance_and_what_is_validated_is_not(tmp_path):
    prepared = made(tmp_path, corpus(), bpe_dropout_samples=3, validation_pairs=15)
    assert len(prepared.valid) == 15
    assert len(prepared.train) % 3 == 0 and len(prepared.train) > 600
    tokenizer = prepared.tokenizers.target
    own = [
        part.pair(n)[1].tolist() == tokenizer.encode(tokenizer.decode(part.pair(n)[1].tolist()))
        for part in (prepared.train, prepared.valid)
        for n in range(len(part))
    ]
    assert all(own[-15:])
    assert any(own[:-15]) and not all(own[:-15])


def test_the_vocabulary_is_learned_from_training_pairs_alone(tmp_path):
    valid = Corpus.from_pairs("valid", [Pair("zigzag", "zigzag")] * 50)
    pieces = made(tmp_path, corpus(), valid).tokenizers.source.pieces
    assert not any("z" in piece for piece in pieces)


def test_what_is_no_text_does_not_fill_the_vocabulary(tmp_path):
    letters = "".join(Random(1).choices("qwxzkvj", k=20_000))
    some = [*pairs(), Pair(letters, "a"), Pair("a", letters), Pair("zzz zzz zzz", " ")]
    vocabularies = [
        learn(lambda some=some: iter(some), RunConfig.from_dict({"data": {"vocab_size": 300}}).data)
        for some in (pairs(), some)
    ]
    plain, crowded = ([one.source.encode(pair.source) for pair in pairs()] for one in vocabularies)
    assert plain == crowded


def test_languages_can_have_vocabularies_of_their_own(tmp_path):
    settings = RunConfig.from_dict({"data": {"joint": False, "vocab_size": 400}}).data
    tokenizers = learn(corpus().read, settings)
    assert " bateau" in tokenizers.target.pieces and " bateau" not in tokenizers.source.pieces


def test_too_few_pairs_to_hold_some_out_are_refused(tmp_path):
    few = Corpus.from_pairs("few", pairs()[:9])
    with pytest.raises(RegardError, match=r"too few pairs to hold some out.*: 9\. --valid would"):
        made(tmp_path, few)


def test_when_every_pair_is_left_out_the_reasons_are_told(tmp_path):
    with pytest.raises(
        RegardError, match=r"no training pair is left: \d+ source longer than 2 tok"
    ):
        made(tmp_path, corpus(), max_length=2)


def test_a_folder_is_claimed_once_and_known_again(tmp_path):
    folder = RunFolder(tmp_path / "run")
    assert claim(folder, RunConfig(), ORIGIN) is False
    assert claim(folder, RunConfig(), ORIGIN) is True
    folder.model.write_bytes(b"")  # it has learned something
    other = RunConfig.from_dict({"train": {"betas": [0.5, 0.6]}})
    with pytest.raises(RegardError, match=r"train.betas = \[0.9, 0.98\], not \[0.5, 0.6\]"):
        claim(folder, other, ORIGIN)


@pytest.mark.parametrize("other", [{"model": {"heads": 8}}, {}])
def test_a_run_that_never_learned_anything_gives_way(tmp_path, other):
    folder = RunFolder(tmp_path / "run")
    claim(folder, RunConfig(), ORIGIN)
    prepare(folder, RunConfig.from_dict({"data": {"vocab_size": 400}}), corpus(), None, 225)
    wanted, origin = RunConfig.from_dict(other), {**ORIGIN, "fingerprints": ["mended"]}
    assert claim(folder, wanted, origin) is False
    assert [path.name for path in folder.path.iterdir()] == ["settings.json"]
    assert folder.read_settings() == (wanted, origin)


def test_what_was_prepared_is_kept_for_the_same_run(tmp_path):
    folder = RunFolder(tmp_path / "run")
    claim(folder, RunConfig(), ORIGIN)
    prepare(folder, RunConfig.from_dict({"data": {"vocab_size": 400}}), corpus(), None, 225)
    assert claim(folder, RunConfig(), ORIGIN) is True
    assert folder.tokenizer.exists() and folder.data.exists()


def test_two_vocabularies_never_share_an_embedding():
    assert settle(corpus(), [])[0].model.share_embeddings is True
    apart, _ = settle(corpus(), [{"data": {"joint": False}}])
    assert apart.model.share_embeddings is False


def test_pairs_that_are_like_one_held_out_are_counted(tmp_path):
    prepared = made(tmp_path, Corpus.from_pairs("twice", pairs() * 2), validation_pairs=15)
    alike = prepared.train.dropped["source also among the pairs held out"]
    assert len(prepared.train) + len(prepared.valid) + alike == 450
    same = Corpus.from_pairs("same", pairs()[:1] * 20)
    with pytest.raises(RegardError, match="is left: 18 source also among the pairs held out"):
        made(tmp_path / "same", same)
