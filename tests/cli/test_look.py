import pytest
import torch
from typer.testing import CliRunner

from regard.cli import app
from regard.cli.look import HeadSelection, draw, trace_hf_model, trace_run
from regard.config import RunConfig
from regard.data import Tokenizers, train_tokenizer
from regard.errors import RegardError
from regard.models import build
from regard.runs import RunFolder, parameters

TEXTS = ["the old cat", "le vieux chat"]
STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}


@pytest.fixture
def run(tmp_path):
    settings = RunConfig.from_dict({"model": {"width": 8, "layers": 2, "heads": 2, "ffn_width": 8}})
    folder = RunFolder(tmp_path / "run")
    folder.write_settings(settings, {"texts": ["t"], "fingerprints": ["f"], "pairs": 2})
    both = train_tokenizer(TEXTS, "characters", 300)
    Tokenizers(both, both).save(folder.tokenizer)
    parameters.save(
        folder.model, parameters.state_of(build(settings.model, (len(both), len(both))))
    )
    return folder.path


def test_trace_run_is_teacher_forced_to_the_target(run):
    trace = trace_run(run, *TEXTS)
    assert "".join(trace.tokens["target"].pieces[1:]).strip() == TEXTS[1]
    assert (trace.model, len(trace.maps)) == ("run", 6)


def test_draw_writes_each_format_or_returns_text(run, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    trace = trace_run(run, *TEXTS)
    text = draw(trace, HeadSelection("encoder", 1, 1), True, {})
    assert "encoder, layer 1, head 1" in text and "cat" in text
    paths = {kind: tmp_path / f"look.{kind}" for kind in STARTS}
    assert draw(trace, HeadSelection(), True, paths).count("wrote ") == len(STARTS)
    for kind, path in paths.items():
        assert path.read_bytes().startswith(STARTS[kind])


@pytest.mark.parametrize("kind", ["png", "svg", "pdf", "html"])
@pytest.mark.parametrize("name", ["look", "look.HTML", "look.png", "look.v2"])
def test_option_not_file_suffix_decides_the_format(run, tmp_path, kind, name):
    path = tmp_path / name
    asked = ["look", str(run), TEXTS[0], "--target", TEXTS[1], f"--{kind}", str(path)]
    done = CliRunner().invoke(app, asked)
    assert (done.exit_code, done.stdout) == (0, f"wrote {path}\n"), done.output
    assert path.read_bytes().startswith(STARTS[kind])


@pytest.mark.parametrize("texts", [(" ", "le chat"), ("the cat", " \t")])
def test_empty_source_or_target_is_an_error(run, texts):
    with pytest.raises(RegardError, match="there is no text to trace"):
        trace_run(run, *texts)


def test_surrounding_whitespace_is_stripped(run):
    assert (
        trace_run(run, " the cat\n", "\tle chat ").tokens
        == trace_run(run, "the cat", "le chat").tokens
    )


def test_unknown_head_is_an_error(run):
    with pytest.raises(RegardError, match="head of"):
        draw(trace_run(run, *TEXTS), HeadSelection("cross", 0, 7), True, {})


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
def test_trace_hf_model_has_tokens_words_and_maps(folder):
    trace = trace_hf_model(str(folder), "the cat looked")
    (tokens,) = trace.tokens.values()
    assert tokens.pieces == ("[CLS]", "the", "cat", "look", "##ed", "[SEP]")
    assert tokens.words == (None, 0, 1, 2, 2, None) and tokens.special == (0, 5)
    assert len(trace.maps) == 2 and trace.maps[0].shape == (2, 6, 6)


@pytest.mark.filterwarnings("ignore")
def test_look_draws_a_hugging_face_model(folder, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    done = CliRunner().invoke(app, ["look", "--hf", str(folder), "the cat look"])
    assert done.exit_code == 0, done.output
    rows = [line.split()[0] for line in done.stdout.splitlines() if line.count("0.") >= 5]
    assert rows == ["[CLS]", "the", "cat", "look", "[SEP]"]


@pytest.mark.filterwarnings("ignore")
def test_folder_without_hf_model_is_a_user_error(tmp_path):
    with pytest.raises(RegardError, match=r"transformers cannot load '.*'"):
        trace_hf_model(str(tmp_path), "the cat")
