import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard import RegardError
from regard._support import extras
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.decoding import Translation
from regard.demo import choose_head, run_demo, showcase
from regard.runs import load

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def small_phrasebook(monkeypatch):
    """Let the demo use a small phrasebook; return it."""
    monkeypatch.setenv("NO_COLOR", "1")

    def load_small(to):
        book = load_phrasebook(to, train=300, valid=20, test=20)
        for module in ("showcase", "models"):
            monkeypatch.setattr(f"regard.demo.{module}.load_phrasebook", lambda _: book)
        return book

    return load_small


@pytest.fixture(scope="module")
def demo_model():
    return load("demo-model")


@pytest.mark.train
@pytest.mark.parametrize(("to", "model"), [("fr", "transformer"), ("zh", "bahdanau")])
def test_demo_trains_evaluates_and_shows_attention(to, model, tmp_path, small_phrasebook):
    book = small_phrasebook(to)
    out, printed = tmp_path / "run", []
    run_demo(out, to=to, model=model, steps=12, echo=printed.append)
    text = "\n".join(printed)
    assert "300 sentence pairs: 12 steps." in text
    assert re.search(r"Test set of 20 unseen sentences: BLEU \d+\.\d, exact match \d+ %\.", text)
    assert "Attention of layer" in text
    assert f"regard translate {out}" in text
    saved = Path(re.search(r"Wrote (.*)", text)[1])
    assert saved.read_bytes().startswith((b"\x89PNG", b"<?xml"))
    assert saved.suffix == ".png" or to == "zh"
    run = load(out)
    assert run.settings.model.kind == ("recurrent" if model == "bahdanau" else "transformer")
    assert (run.settings.train.steps, run.settings.train.minutes) == (12, None)
    head = choose_head(run, book.valid[:3])
    assert 0.0 <= head.value <= 1.0


@pytest.mark.train
def test_demo_without_matplotlib_shows_maps_and_names_the_extra(
    tmp_path, monkeypatch, small_phrasebook
):
    small_phrasebook("fr")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    printed = []
    run_demo(tmp_path / "run", minutes=0.02, echo=printed.append)
    assert "pairs: at most 1 s." in printed[0]
    maps, picture, next_steps = printed[-3:]
    assert "Attention of layer" in maps
    assert re.match(r"No picture was saved: .*pip install 'regard\[pictures\]'\n", picture)
    assert next_steps.startswith("Next:")
    assert not list((tmp_path / "run").glob("attention.*"))


def trace(run, pair, head):
    return showcase._trace_example(run, pair, run.translate(pair.source), head)


def render(run, pair, head):
    return showcase._render_example(trace(run, pair, head), "Why this one.")


def test_showpiece_of_a_correct_translation_has_its_gold_alignment(demo_model, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    pairs = load_phrasebook("fr", train=0).test[:10]
    pair = next(pair for pair in pairs if demo_model.translate(pair.source).text == pair.target)
    text = render(demo_model, pair, choose_head(demo_model, [pair]))
    assert f"\n  {pair.source}\n  {pair.target}\n\n" in text
    assert "Gold alignment" in text and "reference:" not in text


def test_showpiece_shows_the_models_own_translation_and_marks_the_reference(
    demo_model, monkeypatch
):
    """The pair's reference is another one than the model's translation."""
    monkeypatch.setenv("NO_COLOR", "1")
    pair, other = load_phrasebook("fr", train=0).test[:2]
    wrong = pair._replace(target=other.target, target_words=other.target_words, links=())
    translation = demo_model.translate(pair.source).text
    head = choose_head(demo_model, [pair])
    text = render(demo_model, wrong, head)
    assert f"\n  {pair.source}\n  {translation}\n  reference: {other.target}\n" in text
    assert "Gold alignment" not in text
    example = trace(demo_model, wrong, head)
    assert "".join(example.labels[0]) == re.sub(r"\s", "", translation)
    assert example.weights.sum(-1) == pytest.approx(1.0, abs=0.05)


def make_pair(source, target, links):
    words = tuple(source.split()), tuple(target.split())
    return AlignedPair(source, target, *words, links)


REVERSED = ((0, 6), (1, 5), (2, 4), (3, 3), (4, 2), (5, 1), (6, 0))
SWAPPED = ((0, 0), (1, 2), (2, 1), (3, 3), (4, 4), (5, 5), (6, 6))
STRAIGHT = tuple((n, n) for n in range(7))


@pytest.mark.parametrize(
    ("wrong", "shown", "reason"),
    [
        ((), 0, "with 7 to 11 words translated exactly as the reference,"),
        ((0,), 1, "with 7 to 11 words translated exactly as the reference,"),
        ((0, 1), 2, "with 7 to 11 words translated exactly as the reference,"),
        ((0, 1, 2), 3, "sentences translated exactly as the reference,"),
        ((0, 1, 2, 3), 0, "with 7 to 11 words (none is translated exactly),"),
    ],
)
def test_example_has_the_most_reordering_of_exact_translations(wrong, shown, reason):
    pairs = [
        make_pair("a b c d e f g", "A B C D E F G", REVERSED),
        make_pair("h i j k l m n", "H I J K L M N", SWAPPED),
        make_pair("o p q r s t u", "O P Q R S T U", STRAIGHT),
        make_pair("too short", "TOO SHORT", ((0, 1), (1, 0))),
    ]
    texts = ["wrong" if n in wrong else pair.target for n, pair in enumerate(pairs)]
    translations = [Translation(text) for text in texts]
    choice = showcase._choose_example(pairs, translations)
    assert (choice.pair, choice.translation) == (pairs[shown], translations[shown])
    assert reason in choice.reason
    assert max(map(len, choice.reason.splitlines())) <= 80


@pytest.mark.parametrize("to", ["fr", "zh"])
@pytest.mark.parametrize("model", ["transformer", "bahdanau"])
def test_advice_fits_into_80_columns_and_can_be_copied(monkeypatch, to, model):
    monkeypatch.setitem(extras.PACKAGES, "explorer", {"no_such_package"})
    sentence = "The old gardener has given the small green apples to her."
    text = showcase._next_steps(Path("demo"), sentence, to, model)
    assert max(map(len, text.splitlines())) <= 80
    ended = subprocess.run(  # a shell in which `regard` lists its arguments
        ["bash", "-c", "regard() { printf '<%s>' \"$@\"; echo; };" + text.partition("Next:")[2]],
        capture_output=True,
        text=True,
    )
    assert f"<look><demo><{sentence}><--html><look.html>\n" in ended.stdout
    assert ended.stdout.count("\n") == 6 and not ended.stderr


@pytest.mark.parametrize("to", ["fr", "zh"])
@pytest.mark.parametrize("model", ["transformer", "bahdanau"])
def test_advice_names_the_other_language_and_the_other_model(to, model):
    text = showcase._next_steps(Path("here"), "A cat.", to, model)
    other_to, other_model = (
        {"fr": "zh", "zh": "fr"}[to],
        {"transformer": "bahdanau"}.get(model, "transformer"),
    )
    assert f"regard demo --to {other_to} --model {model} --out here-{other_to}" in text
    assert f"regard demo --to {to} --model {other_model} --out here-{other_model}" in text
    assert 'regard look here "A cat."' in text


@pytest.mark.parametrize("is_on_path", [True, False])
def test_advice_activates_an_environment_that_is_not_on_the_path(tmp_path, monkeypatch, is_on_path):
    scripts = tmp_path / "my env" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "activate").touch()
    (scripts / "regard").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(scripts / "python"))
    monkeypatch.setenv("PATH", str(scripts if is_on_path else tmp_path))
    monkeypatch.chdir(tmp_path)
    text = showcase._next_steps(Path("here"), "A cat.", "fr", "transformer")
    assert ("\n  . 'my env/bin/activate'\n" in text) == (not is_on_path)
    assert text.index("activate" if not is_on_path else "translate") < text.index("regard look")


@pytest.mark.parametrize("is_installed", [True, False])
def test_advice_names_the_extra_that_the_explorer_needs(monkeypatch, is_installed):
    packages = {"sys"} if is_installed else {"no_such_package"}
    monkeypatch.setitem(extras.PACKAGES, "explorer", packages)
    text = showcase._next_steps(Path("here"), "A cat.", "fr", "transformer")
    assert ("pip install 'regard[explorer]'" in text) == (not is_installed)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"to": "de"}, "no language of the phrasebook is called 'de'"),
        ({"model": "lstm"}, r"called 'lstm'\. Choose from: bahdanau, transformer\.$"),
        ({"model": "no_attention"}, "model must have attention to show, but 'no_attention'"),
    ],
)
def test_invalid_choice_is_refused_before_anything_is_written(tmp_path, arguments, message):
    with pytest.raises(RegardError, match=message):
        run_demo(tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()
