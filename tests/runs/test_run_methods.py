"""`Run.translate` and `Run.trace` on a trained run."""

import numpy as np
import pytest

from helpers.toy_decoders import forced_log_probs
from regard import Translation
from regard.config import SearchConfig
from regard.data import pad_sequences
from regard.decoding import translate
from regard.errors import RegardError
from regard.runs import load, trace_translation

SENTENCES = ["the old cat sees the dog", "the red boat hears the man", "the big bird"]


@pytest.fixture(scope="module")
def run(tiny_run):
    return load(tiny_run, engine="torch")  # compared with it to the last bit


def test_string_gives_a_translation_and_a_list_gives_a_list(run):
    one = run.translate(SENTENCES[0])
    assert isinstance(one, Translation) and str(one) == one.text
    assert run.translate(SENTENCES)[0].tokens == one.tokens
    assert [type(each) for each in run.translate(SENTENCES)] == [Translation] * 3
    assert run.translate([SENTENCES[0]])[0] == one
    assert run.translate([]) == []


def test_n_best_above_one_gives_lists(run):
    several = run.translate(SENTENCES[0], n_best=3)
    assert [type(each) for each in several] == [Translation] * 3
    assert run.translate([SENTENCES[0]], n_best=3) == [several]


def test_n_best_above_the_runs_beam_size_enlarges_the_beam(run):
    assert run.settings.search.beam_size < 7
    expected = run.translate(SENTENCES[0], n_best=7, beam_size=7)
    assert run.translate(SENTENCES[0], n_best=7) == expected


def test_any_iterable_of_sentences_is_translated_in_order(run):
    expected = run.translate(SENTENCES)
    assert run.translate(sentence for sentence in SENTENCES) == expected
    assert run.translate(tuple(SENTENCES)) == expected


def test_arguments_reach_the_search(run):
    config = SearchConfig(beam_size=3, length_penalty=0.2)
    expected = translate(run.model, run.tokenizers, SENTENCES, config, n_best=2)
    assert run.translate(SENTENCES, beam_size=3, length_penalty=0.2, n_best=2) == expected


def test_samples_repeat_with_their_seed(run):
    one, two, other = (run.translate(SENTENCES, sample=True, seed=seed) for seed in (1, 1, 2))
    assert one == two != other
    assert run.translate(SENTENCES, sample=True, top_k=1) == run.translate(SENTENCES, beam_size=1)
    cold = run.translate(SENTENCES, sample=True, temperature=1e-3, top_p=0.5, seed=3)
    assert [c.tokens for c in cold] == [b.tokens for b in run.translate(SENTENCES, beam_size=1)]


@pytest.mark.parametrize("characters", [1, 2, 4, 5, 7, 11, 14, 99])
def test_prefix_of_the_greedy_translation_gives_that_translation(run, characters):
    """Also if it ends within a token: its first characters alone would be encoded differently."""
    greedy = run.translate(SENTENCES, beam_size=1)
    prefixes = [each.text[:characters] for each in greedy]
    forced = run.translate(SENTENCES, beam_size=1, prefix=prefixes)
    assert [each.tokens for each in forced] == [each.tokens for each in greedy]


@pytest.mark.parametrize("options", [{}, {"sample": True, "seed": 4}])
@pytest.mark.parametrize("prefix", ["un gr", "le homme", "le homme ", "Ça !", " x"])
def test_translation_begins_with_the_prefix_and_has_the_models_log_probs(run, prefix, options):
    translations = run.translate(SENTENCES, prefix=prefix, **options)
    source, lengths = pad_sequences([run.tokenizers.source.encode(text) for text in SENTENCES])
    for item, each in enumerate(translations):
        assert each.text.startswith(prefix.lstrip())
        expected = forced_log_probs(run.model, source, lengths, item, each.tokens)
        assert each.token_log_probs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "^beam_size must be 1 or more, but it is 0"),
        ({"n_best": 0}, "n_best must be 1 or more"),
        ({"n_best": 8, "beam_size": 3}, "n_best must be at most 3, the beam size, but it is 8"),
        ({"temperature": 0.5}, "temperature= belongs to sampling; give sample=, too"),
        ({"seed": 0}, "seed= belongs to sampling"),
        ({"sample": True, "beam_size": 5}, "beam_size= belongs to beam search; leave it out"),
        ({"sample": True, "top_p": 2.0}, "top_p must be above 0 and at most 1, but it is 2.0"),
        ({"prefix": ["a", "b"]}, "prefix must be one text, or one for each of 3 .* there are 2"),
    ],
)
def test_option_out_of_range_is_refused(run, options, message):
    with pytest.raises(RegardError, match=message):
        run.translate(SENTENCES, **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"bytes", "^text must be a string or several of them, but it is of type bytes"),
        (7, "^text must be a string or several of them, but it is of type int"),
        (None, "^text must be a string or several of them, but it is None"),
        ([SENTENCES[0], 7], "^each text must be a string, but it is of type int"),
        ([["a"]], "^each text must be a string, but it is of type list"),
    ],
)
def test_text_that_is_no_string_is_a_type_error(run, unchecked, text, message):
    with pytest.raises(TypeError, match=message):
        run.translate(text)


def test_prefix_that_is_no_string_is_a_type_error(run, unchecked):
    with pytest.raises(TypeError, match="^prefix must be a string or several .* of type int"):
        run.translate("the cat", prefix=3)


def test_length_penalty_that_is_no_number_is_refused_by_the_name_of_the_argument(run, unchecked):
    with pytest.raises(RegardError, match="^length_penalty must be a number, but it is 'x'"):
        run.translate("the cat", length_penalty="x")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (SENTENCES, None, "^source must be a string, but it is of type list"),
        ("the cat", 5, "^target must be a string, token ids or a Translation, but it is of type"),
        ("the cat", ["le", "chat"], "^each target token must be an integer, but it is 'le'"),
        ("the cat", [270, 271.5], "^each target token must be an integer, but it is 271.5"),
    ],
)
def test_trace_of_another_type_is_a_type_error(run, unchecked, source, target, message):
    with pytest.raises(TypeError, match=message):
        run.trace(source, target)


def test_test_set_of_another_type_is_a_type_error(run, unchecked):
    with pytest.raises(TypeError, match="^reference must be a file or a list of lines, .* int"):
        run.evaluate(["the cat"], 1)


def test_run_is_represented_in_one_short_line(run):
    size = sum(parameter.numel() for parameter in run.model.parameters())
    expected = f"<Run {str(run.folder.path)!r}: transformer, {size:,} parameters>"
    assert repr(run) == expected


@pytest.mark.parametrize("name", ["beam_size", "n_best", "top_k", "seed"])
@pytest.mark.parametrize("value", [2.0, "2", True])
def test_number_of_the_wrong_type_is_a_type_error(run, unchecked, name, value):
    with pytest.raises(TypeError, match=f"^{name} must be an integer, but it is {value!r}"):
        run.translate("the cat", **{name: value})


@pytest.mark.usefixtures("unchecked")
def test_numpy_integers_are_integers(run):
    numbers = {"beam_size": 3, "n_best": 2, "min_length": 1, "max_length": 9}
    expected = run.translate("the cat", **numbers)
    assert run.translate("the cat", **{k: np.int64(n) for k, n in numbers.items()}) == expected
    sampled = [
        run.translate("the cat", sample=True, top_k=kind(5), seed=kind(2**62))
        for kind in (int, np.int64)
    ]
    assert sampled[0] == sampled[1]


def test_trace_is_that_of_the_translation_found(run):
    best = run.translate(SENTENCES[0])
    expected = trace_translation(run.model, run.tokenizers, SENTENCES[0], best.tokens, name="tiny")
    for target in (None, best, best.tokens, best.text):
        assert run.trace(f" {SENTENCES[0]} ", target).to_json() == expected.to_json()


def test_trace_of_a_forced_target_has_its_words(run):
    trace = run.trace(SENTENCES[0], "le chien rouge", title="a title")
    assert "le chien rouge" in "".join(trace.tokens["target"].pieces)
    assert trace.title == "a title"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((" ",), "source must have words to trace, but it is empty"),
        (("the cat", " "), "target must have words to trace, but it is empty"),
    ],
)
def test_trace_without_words_is_refused(run, arguments, message):
    with pytest.raises(RegardError, match=message):
        run.trace(*arguments)
