import sys
from random import Random

import pytest

from helpers.tiny_corpus import tiny_corpus, tiny_pairs, write_tsv
from regard.config import RunConfig
from regard.data import Corpus, Pair
from regard.errors import RegardError
from regard.runs import RunFolder
from regard.training.setup import (
    claim_folder,
    open_data,
    prepare_data,
    resolve_config,
    scan_corpus,
    train_tokenizers,
)

ORIGIN = {"texts": ["t"], "fingerprints": ["f"], "pairs": 3}
SMALL_VOCABULARY = {"data": {"vocab_size": 400}}


def resolve(corpus, updates=()):
    return resolve_config(scan_corpus(corpus), updates)


def test_settings_depend_on_corpus_size_and_later_updates_win():
    updates = [{"train": {"learning_rate": 0.5}}, {"train": {"learning_rate": 0.25}}]
    config = resolve(tiny_corpus(), updates)
    assert (config.model.layers, config.data.vocab_size) == (3, 4000)  # below 10,000 pairs
    assert config.train.learning_rate == 0.25


def test_empty_corpus_is_refused():
    with pytest.raises(RegardError, match="nothing must have pairs, but there are none"):
        scan_corpus(Corpus.from_pairs("nothing", []))


def test_separate_vocabularies_never_share_an_embedding():
    assert resolve(tiny_corpus()).model.share_embeddings is True
    separate = resolve(tiny_corpus(), [{"data": {"joint": False}}])
    assert separate.model.share_embeddings is False


def fingerprint(pairs, name="some"):
    return scan_corpus(Corpus.from_pairs(name, pairs)).fingerprint


def test_fingerprint_depends_on_pairs_order_and_links_but_not_on_the_name():
    pairs = [Pair("a", "b", (((0, 1), (0, 1)),)), Pair("c", "d")]
    unlinked = [pair._replace(links=()) for pair in pairs]
    moved = [Pair("ab", ""), Pair("c", "d")]
    others = [fingerprint(some) for some in (pairs[::-1], unlinked, moved, pairs[:1])]
    assert len({fingerprint(pairs), *others}) == 5
    assert fingerprint(pairs, "another name") == fingerprint(pairs)


def test_fingerprint_of_files_is_that_of_their_pairs(tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    sides = [tmp_path / "source.txt", tmp_path / "target.txt"]
    for index, path in enumerate(sides):
        path.write_text("".join(f"{pair[index]}\n" for pair in tiny_pairs()))
    expected = scan_corpus(tiny_corpus()).fingerprint
    for paths in ([tsv], sides):
        assert scan_corpus(Corpus.from_files(paths)).fingerprint == expected


class FileOpenCounter:
    """Counts how often a file is opened, by an audit hook: such a hook cannot be removed."""

    def __init__(self, path):
        self.path, self.count = str(path), 0
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if event == "open" and str(arguments[0]) == self.path:
            self.count += 1


@pytest.mark.parametrize(
    ("updates", "with_valid", "passes"),
    [({}, False, 4), ({"data": {"joint": False}}, False, 5), ({}, True, 3)],
    ids=["held-out validation pairs", "separate vocabularies", "given validation corpus"],
)
def test_number_of_passes_over_the_corpus_before_training(tmp_path, updates, with_valid, passes):
    """Count and fingerprint; collect the held-out pairs; train the tokenizers; encode."""
    tsv = write_tsv(tmp_path / "pairs.tsv")
    counter = FileOpenCounter(tsv)
    corpus = Corpus.from_files([tsv])
    valid = Corpus.from_pairs("valid", tiny_pairs()[:5]) if with_valid else None
    folder, summary = RunFolder(tmp_path / "run"), scan_corpus(corpus)
    config = resolve_config(summary, [SMALL_VOCABULARY, updates])
    prepare_data(folder, config, corpus, valid, summary.pairs)
    open_data(folder, config)
    assert counter.count == passes


def test_prepared_data_is_not_prepared_again(tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    corpus, config = Corpus.from_files([tsv]), RunConfig.from_dict(SMALL_VOCABULARY)
    prepare_data(RunFolder(tmp_path / "run"), config, corpus, None, 225)
    counter = FileOpenCounter(tsv)
    prepare_data(RunFolder(tmp_path / "run"), config, corpus, None, 225)
    assert counter.count == 0


def sources_of(pairs, tokenizers):
    return [tokenizers.source.decode(pairs.pair(i)[0].tolist()) for i in range(len(pairs))]


def test_held_out_pairs_are_those_that_the_seed_draws(make_data):
    data = make_data({"train": {"seed": 5}, "data": {"validation_pairs": 15}})
    drawn = sorted(Random(5).sample(range(225), 15))
    assert sources_of(data.valid, data.tokenizers) == [tiny_pairs()[i].source for i in drawn]


def test_source_of_a_held_out_pair_is_never_trained_on(make_data):
    twice = Corpus.from_pairs("twice", tiny_pairs() * 2)
    data = make_data({"data": {"validation_pairs": 15}}, twice)
    train, valid = (set(sources_of(pairs, data.tokenizers)) for pairs in (data.train, data.valid))
    assert len(data.valid) == 15
    assert not train & valid


def test_dropped_duplicates_of_held_out_sources_are_counted(make_data, tmp_path):
    twice = Corpus.from_pairs("twice", tiny_pairs() * 2)
    data = make_data({"data": {"validation_pairs": 15}}, twice)
    dropped = data.train.dropped["source also among the held-out pairs"]
    assert len(data.train) + len(data.valid) + dropped == 450
    same = Corpus.from_pairs("same", tiny_pairs()[:1] * 20)
    with pytest.raises(RegardError, match="is left: 18 source also among the held-out pairs"):
        make_data({}, same, folder=tmp_path / "same")


def test_given_validation_corpus_is_used_and_nothing_is_held_out(make_data):
    valid = Corpus.from_pairs("valid", [Pair("the old boat", "le vieux bateau")])
    data = make_data({}, valid=valid)
    assert (len(data.train), len(data.valid)) == (225, 1)


def test_bpe_dropout_samples_training_pairs_only(make_data):
    data = make_data({"data": {"bpe_dropout_samples": 3, "validation_pairs": 15}})
    assert len(data.valid) == 15
    assert len(data.train) % 3 == 0 and len(data.train) > 600
    tokenizer = data.tokenizers.target

    def is_deterministic(pairs):
        targets = (pairs.pair(i)[1].tolist() for i in range(len(pairs)))
        return [ids == tokenizer.encode(tokenizer.decode(ids)) for ids in targets]

    assert all(is_deterministic(data.valid))
    assert any(is_deterministic(data.train)) and not all(is_deterministic(data.train))


def test_vocabulary_is_trained_on_training_pairs_only(make_data):
    valid = Corpus.from_pairs("valid", [Pair("zigzag", "zigzag")] * 50)
    pieces = make_data({}, valid=valid).tokenizers.source.pieces
    assert not any("z" in piece for piece in pieces)


def test_implausible_pairs_do_not_fill_the_vocabulary():
    letters = "".join(Random(1).choices("qwxzkvj", k=20_000))
    noise = [Pair(letters, "a"), Pair("a", letters), Pair("zzz zzz zzz", " ")]
    config = RunConfig.from_dict({"data": {"vocab_size": 300}}).data
    clean, noisy = (
        train_tokenizers(lambda pairs=pairs: iter(pairs), config)
        for pairs in (tiny_pairs(), tiny_pairs() + noise)
    )
    for pair in tiny_pairs():
        assert clean.source.encode(pair.source) == noisy.source.encode(pair.source)


def test_separate_vocabularies_hold_their_own_language():
    config = RunConfig.from_dict({"data": {"joint": False, "vocab_size": 400}}).data
    tokenizers = train_tokenizers(tiny_corpus().read, config)
    assert " bateau" in tokenizers.target.pieces and " bateau" not in tokenizers.source.pieces


def test_too_few_pairs_for_a_hold_out_are_refused(make_data):
    few = Corpus.from_pairs("few", tiny_pairs()[:9])
    with pytest.raises(RegardError, match=r"10 or more pairs are needed .* are 9; --valid names"):
        make_data({}, few)


def test_reasons_are_listed_when_every_pair_is_dropped(make_data):
    with pytest.raises(RegardError, match=r"no training pair is left: \d+ source longer than 2 "):
        make_data({"data": {"max_length": 2}})


def test_folder_is_claimed_once_and_recognized_again(tmp_path):
    folder = RunFolder(tmp_path / "run")
    assert claim_folder(folder, RunConfig(), ORIGIN) is False
    assert claim_folder(folder, RunConfig(), ORIGIN) is True
    folder.model.write_bytes(b"")  # it has parameters
    other = RunConfig.from_dict({"train": {"betas": [0.5, 0.6]}})
    with pytest.raises(RegardError, match=r"train.betas = \[0.9, 0.98\], not \[0.5, 0.6\]"):
        claim_folder(folder, other, ORIGIN)


@pytest.mark.parametrize("other", [{"model": {"heads": 8}}, {}])
def test_run_without_parameters_is_replaced(tmp_path, other):
    folder = RunFolder(tmp_path / "run")
    claim_folder(folder, RunConfig(), ORIGIN)
    prepare_data(folder, RunConfig.from_dict(SMALL_VOCABULARY), tiny_corpus(), None, 225)
    config, origin = RunConfig.from_dict(other), {**ORIGIN, "fingerprints": ["changed"]}
    assert claim_folder(folder, config, origin) is False
    assert [path.name for path in folder.path.iterdir()] == ["settings.json"]
    assert folder.read_settings() == (config, origin)


def test_same_run_keeps_what_was_prepared(tmp_path):
    folder = RunFolder(tmp_path / "run")
    claim_folder(folder, RunConfig(), ORIGIN)
    prepare_data(folder, RunConfig.from_dict(SMALL_VOCABULARY), tiny_corpus(), None, 225)
    assert claim_folder(folder, RunConfig(), ORIGIN) is True
    assert folder.tokenizer.exists() and folder.data.exists()
