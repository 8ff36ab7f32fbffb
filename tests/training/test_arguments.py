"""Forms of a corpus and of settings that `train` accepts."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from helpers.tiny_corpus import TINY, tiny_pairs, write_tsv
from helpers.training import are_equal, discard, load_parameters
from regard.config import ModelConfig, RunConfig
from regard.data import Corpus, Pair
from regard.errors import RegardError
from regard.training import Callback, train
from regard.training.arguments import check_callbacks, collect_settings, to_corpus

PAIRS = [("a cat", "un chat"), (" a dog ", "un chien\n"), ("two\nlines", "deux\tlignes")]
STRIPPED = [Pair(source.strip(), target.strip()) for source, target in PAIRS]


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    "corpus",
    [
        PAIRS,
        tuple(PAIRS),
        [list(pair) for pair in PAIRS],
        [Pair(*pair) for pair in PAIRS],
        dict(PAIRS).items(),
        (pair for pair in PAIRS),
        iter(PAIRS),
        np.array(PAIRS),
        np.array(PAIRS, dtype=object),  # as tables of pandas give them
    ],
    ids=["list", "tuple", "lists", "Pair", "view", "generator", "iterator", "array", "objects"],
)
def test_pairs_in_any_form_can_be_read_repeatedly(stack, corpus):
    made = to_corpus(corpus, stack)
    one, two = made.read(), made.read()
    assert next(one) == next(two) == STRIPPED[0]  # two passes at once
    assert [STRIPPED[0], *one] == STRIPPED == list(made.read())


def test_temporary_file_of_an_iterator_is_removed():
    with ExitStack() as stack:
        corpus = to_corpus(iter(PAIRS), stack)
        assert len(list(corpus.read())) == 3
    with pytest.raises(FileNotFoundError):
        list(corpus.read())


def test_links_of_pairs_are_kept_by_lists_and_iterators(stack):
    linked = [Pair("a cat", "un chat", (((0, 1), (0, 2)), ((2, 5), (3, 7))))]
    for corpus in (linked, iter(linked)):
        assert list(to_corpus(corpus, stack).read()) == linked


def test_files_are_one_path_or_two(stack, tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    for corpus in (tsv, str(tsv), [tsv], (str(tsv),)):
        assert list(to_corpus(corpus, stack).read()) == tiny_pairs()
    for side, name in enumerate(("a.en", "a.fr")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in tiny_pairs()))
    both = (tmp_path / "a.en", str(tmp_path / "a.fr"))
    assert list(to_corpus(both, stack).read()) == tiny_pairs()


def test_corpus_is_used_as_it_is(stack):
    corpus = Corpus.from_pairs("mine", STRIPPED)
    assert to_corpus(corpus, stack) is corpus


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (7, "corpus must be a file, two parallel files or pairs of strings, but it is of type int"),
        (b"pairs.tsv", "but it is of type bytes"),
        ({"a": "b"}, "but it is of type dict"),
        ([("a", "b"), ("c",)], r"pairs of strings \(source, target\), but pair 1 is \('c',\)"),
        ([("a", 7)], r"but pair 0 is \('a', 7\)"),
        (iter(["ab"]), "but pair 0 is 'ab'"),
    ],
)
def test_corpus_of_another_type_is_a_type_error(stack, unchecked, corpus, message):
    with pytest.raises(TypeError, match=message):
        list(to_corpus(corpus, stack).read())


@pytest.mark.parametrize("settings", ["run.toml", [("model", {})], ModelConfig(), 3])
def test_settings_that_are_no_dict_are_a_type_error(unchecked, settings):
    expected = (
        r"settings must be a dict \{section: \{key: value\}\} or a RunConfig, but it is of type"
    )
    with pytest.raises(TypeError, match=expected):
        collect_settings(settings)


def test_preset_of_another_type_is_refused_with_the_choices(unchecked):
    with pytest.raises(RegardError, match="no preset is called 3. Choose from: multi30k"):
        collect_settings((), preset=3)


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (Callback(), "callbacks must be a list of Callback objects, but it is of type Callback"),
        ([print], "each callback must be an object of a subclass of regard.Callback, .* of type"),
        ([Callback], "each callback must be an object of .* but it is the class Callback"),
    ],
)
def test_callbacks_of_another_type_are_a_type_error(unchecked, callbacks, message):
    with pytest.raises(TypeError, match=message):
        check_callbacks(callbacks)


def test_wrong_callback_or_folder_is_refused_before_a_run_is_created(unchecked, tmp_path):
    with pytest.raises(TypeError, match="each callback must be"):
        train(PAIRS, tmp_path / "run", callbacks=[print], echo=discard)
    assert not (tmp_path / "run").exists()
    with pytest.raises(TypeError, match="out must be the path of a run folder, but it is of type"):
        train(PAIRS, 5, echo=discard)


def test_alignments_belong_to_files(stack):
    with pytest.raises(RegardError, match=r"alignments= is a file that belongs to files of pairs"):
        to_corpus(PAIRS, stack, alignments=Path("links.txt"))


def test_explicit_limits_override_settings_which_override_the_preset():
    config = RunConfig.from_dict({"train": {"steps": 7, "minutes": 3.0}})
    for settings in (config, config.to_dict(), [{"train": {"steps": 7}}]):
        merged = RunConfig()
        for update in collect_settings(settings, preset="multi30k", steps=9):
            merged = merged.update(update)
        assert merged.train.steps == 9
        assert settings is not config or merged.model == RunConfig().model
    assert collect_settings((), minutes=2.0) == [{"train": {"minutes": 2.0}}]


@pytest.mark.train
def test_pairs_files_and_iterators_give_the_same_run_and_resume_each_other(tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    plain = [(pair.source, pair.target) for pair in tiny_pairs()]
    train(tsv, tmp_path / "a", settings=TINY, echo=discard)
    train(iter(plain), tmp_path / "b", settings=TINY, echo=discard)
    assert are_equal(load_parameters(tmp_path / "a"), load_parameters(tmp_path / "b"))
    lines = []
    train(plain, tmp_path / "a", settings=TINY, echo=lines.append)
    assert any("already finished" in line for line in lines)


@pytest.mark.train
def test_validation_pairs_may_be_a_list_and_settings_a_whole_config(tmp_path):
    plain = [(pair.source, pair.target) for pair in tiny_pairs()]
    config = RunConfig.from_dict(TINY)
    run = train(plain[20:], tmp_path, valid=plain[:20], settings=config, steps=4, echo=discard)
    assert run.settings == config.update({"train": {"steps": 4, "processes": 1}})
