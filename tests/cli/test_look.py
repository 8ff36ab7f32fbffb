import pytest
import torch
from typer.testing import CliRunner

from regard.cli.commands import app
from regard.cli.look import Place, draw, of_hugging_face, of_run
from regard.config import RunConfig, change
from regard.data.tokenizer import Tokenizers
from regard.data.vocabulary import train
from regard.errors import RegardError
from regard.models import build
from regard.runs import parameters
from regard.runs.run import RunFolder

TEXTS = ["the old cat", "le vieux chat"]
STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}


@pytest.fixture
def run(tmp_path):
    settings = change(RunConfig(), {"model": {"width": 8, "layers": 2, "heads": 2, "ffn_width": 8}})
    folder = RunFolder(tmp_path / "run")
    folder.write_settings(settings, {"texts": ["t"], "fingerprints": ["f"], "pairs": 2})
    both = train(TEXTS, "characters", 300)
    Tokenizers(both, both).save(folder.tokenizer)
    parameters.save(folder.model, parameters.of(build(settings.model, (len(both), len(both)))))
    return folder.path


def test_a_run_is_seen_saying_what_it_is_told_to(run):
    trace = of_run(run, *TEXTS)
    assert "".join(trace.tokens["target"].pieces[1:]).strip() == TEXTS[1]
    assert (trace.model, len(trace.looks)) == ("run", 6)


def test_pictures_are_written_as_they_are_asked_for_or_drawn_as_text(run, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    trace = of_run(run, *TEXTS)
    text = draw(trace, Place("encoder", 1, 1), True, {})
    assert "encoder, layer 1, head 1" in text and "cat" in text
    paths = {kind: tmp_path / f"look.{kind}" for kind in STARTS}
    assert draw(trace, Place(), True, paths).count("the picture: ") == len(STARTS)
    for kind, path in paths.items():
        assert path.read_bytes().startswith(STARTS[kind])


@pytest.mark.parametrize("kind", ["png", "svg", "pdf", "html"])
@pytest.mark.parametrize("name", ["look", "look.HTML", "look.png", "look.v2"])
def test_the_option_and_not_the_name_decides_what_is_written(run, tmp_path, kind, name):
    path = tmp_path / name
    asked = ["look", str(run), TEXTS[0], "--target", TEXTS[1], f"--{kind}", str(path)]
    done = CliRunner().invoke(app, asked)
    assert (done.exit_code, done.stdout) == (0, f"the picture: {path}\n"), done.output
    assert path.read_bytes().startswith(STARTS[kind])


@pytest.mark.parametrize("texts", [(" ", "le chat"), ("the cat", " \t")])
def test_nothing_to_look_at_is_refused(run, texts):
    with pytest.raises(RegardError, match="there must be words to look at, but there are none"):
        of_run(run, *texts)


def test_spaces_around_a_text_are_not_looked_at(run):
    assert (
        of_run(run, " the cat\n", "\tle chat ").tokens == of_run(run, "the cat", "le chat").tokens
    )


def test_a_head_that_is_not_there_is_refused(run):
    with pytest.raises(RegardError, match="head of"):
        draw(of_run(run, *TEXTS), Place("cross", 0, 7), True, {})


transformers = pytest.importorskip("transformers")


@pytest.fixture
def folder(tmp_path):
    """A small BERT and its tokenizer, saved as Hugging Face saves them."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "look", "##ed"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


@pytest.mark.filterwarnings("ignore")
def test_a_hugging_face_model_is_seen_reading(folder):
    trace = of_hugging_face(str(folder), "the cat looked")
    (tokens,) = trace.tokens.values()
    assert tokens.pieces == ("[CLS]", "the", "cat", "look", "##ed", "[SEP]")
    assert tokens.words == (None, 0, 1, 2, 2, None) and tokens.special == (0, 5)
    assert len(trace.looks) == 2 and trace.looks[0].sizes == (2, 6, 6)


@pytest.mark.filterwarnings("ignore")
def test_the_verb_looks_at_a_hugging_face_model(folder, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    done = CliRunner().invoke(app, ["look", "--hf", str(folder), "the cat look"])
    assert done.exit_code == 0, done.output
    rows = [line.split()[0] for line in done.stdout.splitlines() if line.count("0.") >= 5]
    assert rows == ["[CLS]", "the", "cat", "look", "[SEP]"]


@pytest.mark.filterwarnings("ignore")
def test_a_folder_without_a_model_is_one_sentence(tmp_path):
    with pytest.raises(RegardError, match=r"transformers cannot load '.*'"):
        of_hugging_face(str(tmp_path), "the cat")
