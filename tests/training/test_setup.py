import re
import shutil
import sys
from random import Random

import pytest

from helpers.tiny_corpus import tiny_corpus, tiny_pairs, write_tsv
from regard.config import RunConfig
from regard.data import Corpus, Pair
from regard.errors import RegardError
from regard.runs import RunFolder
from regard.training.preparation import open_data, prepare_data, train_tokenizers
from regard.training.setup import CorpusSummary, claim_folder, resolve_config, scan_corpus

ORIGIN = {"texts": ["t"], "fingerprints": ["f"], "pairs": 3}
SMALL_VOCABULARY = {"data": {"vocab_size": 400}}


def resolve(corpus, updates=()):
    return resolve_config(scan_corpus(corpus), updates)


def test_settings_depend_on_corpus_size_and_later_updates_win():
    updates = [{"train": {"learning_rate": 0.5}}, {"train": {"learning_rate": 0.25}}]
    config = resolve(tiny_corpus(), updates)
    assert (config.model.layers, config.data.vocab_size) == (3, 4000)  # below 10,000 pairs
    assert config.train.learning_rate == 0.25


@pytest.mark.parametrize("optimizer, bytes_each", [("adam", 16), ("muon", 12)])
def test_model_larger_than_memory_is_refused_with_its_size(monkeypatch, optimizer, bytes_each):
    monkeypatch.setattr("regard.training.setup.total_memory", lambda: 10**9)
    changes = [{"model": {"layers": 200, "width": 1024}, "train": {"optimizer": optimizer}}]
    message = r"([\d,]+) parameters, which needs ([\d.]+) GB to train, but this machine has 1\.0 GB"
    with pytest.raises(RegardError, match=message) as error:
        resolve(tiny_corpus(), changes)
    number, gigabytes = re.search(message, str(error.value)).groups()
    assert float(gigabytes) == pytest.approx(
        bytes_each * int(number.replace(",", "")) / 1e9, abs=0.05
    )


def test_vocabulary_larger_than_memory_is_refused(tiny_run, monkeypatch):
    folder = RunFolder(tiny_run)
    config, _ = folder.read_settings()
    monkeypatch.setattr("regard.training.setup.total_memory", lambda: 10**5)
    with pytest.raises(RegardError, match="data.vocab_size describe a model of .* parameters"):
        open_data(folder, config)


def test_empty_corpus_is_refused():
    with pytest.raises(RegardError, match="nothing must not be empty: there is no pair"):
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
    corpus = Corpus.from_files([tsv])  # looks at the first lines, for further columns
    counter = FileOpenCounter(tsv)
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


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "data/train/source.tokens", "data/valid/metadata.json"]
)
def test_damaged_data_is_made_again_from_the_texts_with_a_message(tmp_path, name):
    config, lines = RunConfig.from_dict(SMALL_VOCABULARY), []
    folder = RunFolder(tmp_path / "run")
    folder.write_settings(config, ORIGIN)
    prepare_data(folder, config, tiny_corpus(), None, 225)
    paths = [path for path in folder.path.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in paths}
    damaged = bytearray(before[folder.path / name])
    damaged[len(damaged) // 2] ^= 1
    (folder.path / name).write_bytes(damaged)
    with pytest.raises(RegardError, match=name):
        open_data(folder, config)
    prepare_data(folder, config, tiny_corpus(), None, 225, lines.append)
    assert len(lines) == 1 and str(folder.path / name) in lines[0]
    assert lines[0].endswith("; making it again from the texts")
    assert {path: path.read_bytes() for path in paths} == before


def test_data_of_another_run_is_made_again(tmp_path):
    config, lines = RunConfig.from_dict(SMALL_VOCABULARY), []
    folders = [RunFolder(tmp_path / name) for name in ("one", "other")]
    for folder, fingerprint in zip(folders, "fg", strict=True):
        folder.write_settings(config, {**ORIGIN, "fingerprints": [fingerprint]})
        prepare_data(folder, config, tiny_corpus(), None, 225)
    shutil.rmtree(folders[0].data)
    shutil.copytree(folders[1].data, folders[0].data)
    prepare_data(folders[0], config, tiny_corpus(), None, 225, lines.append)
    assert [line.count("metadata.json must be of run") for line in lines] == [1, 1]


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
    with pytest.raises(RegardError, match=r"is left: dropped 18 \(source also among"):
        make_data({}, same, folder=tmp_path / "same")


def test_empty_sources_are_dropped_as_empty_also_if_one_is_held_out(make_data):
    pairs = [*tiny_pairs(), *[Pair("", "")] * 225]
    data = make_data({"data": {"validation_pairs": 15}}, Corpus.from_pairs("empty lines", pairs))
    assert len(data.train) + len(data.valid) == 225
    assert data.train.dropped.keys() == data.valid.dropped.keys() == {"empty source"}


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
    with pytest.raises(RegardError, match=r"10 or more pairs are needed .* has 9; valid= names"):
        make_data({}, few)


def test_reasons_are_listed_when_every_pair_is_dropped(make_data):
    with pytest.raises(RegardError, match=r"no training pair is left: dropped \d+ \(source longer"):
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


def test_time_limit_decays_the_learning_rate_unless_a_schedule_is_set():
    summary = CorpusSummary(5000, False, "")
    assert resolve_config(summary, []).train.schedule == "inverse_sqrt"
    limit = {"train": {"minutes": 10.0}}
    limited = resolve_config(summary, [limit]).train
    assert (limited.schedule, limited.optimizer, limited.learning_rate) == ("cosine", "muon", 4e-3)
    large = resolve_config(summary._replace(pairs=200_000), [limit]).train
    assert (large.schedule, large.optimizer, large.learning_rate) == ("cosine", "adam", 1e-3)
    constant = {"train": {"schedule": "constant"}}
    assert resolve_config(summary, [constant, limit]).train.schedule == "constant"


def test_limit_of_few_epochs_lowers_dropout_and_raises_the_learning_rate_unless_set():
    summary = CorpusSummary(30_000, False, "")
    short, long = ({"train": {"minutes": minutes}} for minutes in (29.0, 31.0))
    config = resolve_config(summary, [short])
    assert (config.model.dropout, config.train.learning_rate) == (0.15, 7e-3)
    longer = resolve_config(summary, [long])
    assert (longer.model.dropout, longer.train.learning_rate) == (0.3, 4e-3)
    large = resolve_config(summary._replace(pairs=200_000), [short])
    assert (large.model.dropout, large.train.learning_rate) == (0.2, 1e-3)
    chosen = {"model": {"dropout": 0.4}}
    assert resolve_config(summary, [chosen, short]).model.dropout == 0.4


@pytest.mark.parametrize("name", ["settings.json", "model.safetensors", "log.jsonl", "README.md"])
def test_link_to_a_file_outside_of_the_run_is_not_written_to(tmp_path, name):
    outside, folder = tmp_path / "outside", RunFolder(tmp_path / "run")
    outside.write_text("important")
    folder.path.mkdir()
    (folder.path / name).symlink_to(outside)
    with pytest.raises(RegardError, match=f"{name} must be a file of the run, but it is a link to"):
        claim_folder(folder, RunConfig(), ORIGIN)
    assert outside.read_text() == "important"
