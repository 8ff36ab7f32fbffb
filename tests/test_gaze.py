import pytest
import torch
from typer.testing import CliRunner

from regard import store
from regard.cli import app
from regard.config import Settings, change
from regard.errors import RegardError
from regard.gaze import Place, draw, of_hugging_face, of_run
from regard.models import build
from regard.run import Folder
from regard.text.tokenizer import Tokenizers
from regard.text.vocabulary import train

TEXTS = ["the old cat", "le vieux chat"]


@pytest.fixture
def run(tmp_path):
    settings = change(Settings(), {"model": {"width": 8, "layers": 2, "heads": 2, "hidden": 8}})
    folder = Folder(tmp_path / "run")
    folder.write_settings(settings, {"texts": ["t"], "fingerprints": ["f"], "pairs": 2})
    both = train(TEXTS, "characters", 300)
    Tokenizers(both, both).save(folder.tokenizer)
    store.save(folder.model, store.of(build(settings.model, (len(both), len(both)))))
    return folder.path


def test_a_run_is_seen_saying_what_it_is_told_to(run):
    trace = of_run(run, *TEXTS)
    assert "".join(trace.tokens["target"].pieces[1:]).strip() == TEXTS[1]
    assert (trace.model, len(trace.looks)) == ("run", 6)


def test_pictures_are_written_by_their_endings_or_drawn_as_text(run, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    trace = of_run(run, *TEXTS)
    text = draw(trace, Place("encoder", 1, 1), True, [])
    assert "encoder, layer 1, head 1" in text and "cat" in text
    paths = [tmp_path / f"look.{ending}" for ending in ("png", "svg", "html")]
    assert draw(trace, Place(), True, paths).count("the picture: ") == 3
    starts = [path.read_bytes()[:15] for path in paths]
    assert (
        starts[0][1:4] == b"PNG" and starts[1][:5] == b"<?xml" and starts[2] == b"<!DOCTYPE html>"
    )


def test_nothing_to_look_at_is_refused(run):
    with pytest.raises(RegardError, match="there must be words to look at, but there are none"):
        of_run(run, " ", "le chat")


def test_a_head_that_is_not_there_is_refused(run):
    with pytest.raises(RegardError, match="head of"):
        draw(of_run(run, *TEXTS), Place("cross", 0, 7), True, [])


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
