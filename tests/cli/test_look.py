import re
import shutil
import socket
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from regard.analysis import select_head
from regard.cli import app
from regard.cli.look import HeadSelection, draw, trace_hf_model, trace_run
from regard.config import RunConfig
from regard.data import Tokenizers, train_tokenizer
from regard.errors import RegardError
from regard.models import build
from regard.runs import RunFolder, parameters
from regard.trace import merge_subwords

TEXTS = ["the old cat", "le vieux chat"]
STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}


@pytest.fixture
def run(tmp_path):
    settings = RunConfig.from_dict({"model": {"width": 8, "layers": 2, "heads": 2, "ffn_width": 8}})
    folder = RunFolder(tmp_path / "run")
    folder.write_settings(settings, {"texts": ["t"], "fingerprints": ["f"], "pairs": 2})
    both = train_tokenizer(TEXTS, "characters", 300)
    Tokenizers(both, both).save(folder.tokenizer)
    parameters.save(folder.model, parameters.state_of(build(settings.model, len(both))))
    return folder.path


def test_trace_run_is_teacher_forced_to_the_target(run):
    trace = trace_run(run, *TEXTS)
    assert "".join(trace.tokens["target"].pieces[:-1]).strip() == TEXTS[1]
    assert (trace.model, len(trace.maps)) == ("run", 6)


def test_rows_are_output_or_input_words(run, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    trace = trace_run(run, *TEXTS)
    assert "writing ↓  reading →" in draw(trace, HeadSelection(), True, {})
    assert "decoder input ↓  reading →" in draw(trace, HeadSelection(), True, {}, rows="input")
    with pytest.raises(RegardError, match="--rows must be output or input, but it is 'both'"):
        draw(trace, HeadSelection(), True, {}, rows="both")


def test_draw_writes_each_format_or_returns_text(run, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    trace = trace_run(run, *TEXTS)
    text = draw(trace, HeadSelection("encoder", 1, 1), True, {})
    assert "Encoder · layer 1, head 1" in text and "cat" in text
    paths = {kind: tmp_path / f"look.{kind}" for kind in STARTS}
    assert draw(trace, HeadSelection(), True, paths).count("wrote ") == len(STARTS)
    for kind, path in paths.items():
        assert path.read_bytes().startswith(STARTS[kind])


@pytest.mark.parametrize("kind", ["png", "svg", "pdf", "html"])
@pytest.mark.parametrize("name", ["look", "look.HTML", "look.png", "look.v2"])
def test_option_not_file_suffix_decides_the_format(run, tmp_path, kind, name):
    path = tmp_path / name
    arguments = ["look", str(run), TEXTS[0], "--target", TEXTS[1], f"--{kind}", str(path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "the old cat → le vieux chat"
    assert done.stdout.splitlines()[-1] == f"wrote {path}"
    assert path.read_bytes().startswith(STARTS[kind])


@pytest.mark.parametrize("texts", [(" ", "le chat"), ("the cat", " \t")])
def test_empty_source_or_target_is_an_error(run, texts):
    with pytest.raises(RegardError, match="must have words to trace"):
        trace_run(run, *texts)


def test_surrounding_whitespace_is_stripped(run):
    assert (
        trace_run(run, " the cat\n", "\tle chat ").tokens
        == trace_run(run, "the cat", "le chat").tokens
    )


def selected(run, *options):
    """Return the line that says which head was selected, and the trace of words."""
    done = CliRunner().invoke(app, ["look", str(run), TEXTS[0], "--target", TEXTS[1], *options])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "the old cat → le vieux chat"
    return lines[1:], merge_subwords(trace_run(run, *TEXTS))


@pytest.mark.parametrize("kind, criterion", [("cross", "alignment score"), ("encoder", "entropy")])
def test_look_reports_the_selected_head_and_why(run, kind, criterion):
    lines, trace = selected(run, "--kind", kind)
    maps = trace.layers("cross" if kind == "cross" else "self", None)
    best = select_head(trace, maps)
    name = {"cross": "Cross-attention", "encoder": "Encoder"}[kind]
    assert lines[0].startswith(f"{name} · layer {best.layer}, head {best.head} has the ")
    assert f"est {criterion} of 4 heads, {best.value:.2f}" in lines[0]
    assert lines[2] == f"run · {name} · layer {best.layer}, head {best.head}"


def test_look_explains_nothing_that_was_asked_for(run):
    lines, _ = selected(run, "--kind", "cross", "--layer", "-1", "--head", "1")
    assert lines[:2] == ["", "run · Cross-attention · layer 1, head 1"]
    lines, trace = selected(run, "--layer", "1")
    best = select_head(trace, layer=1)
    assert f"head {best.head} has the highest alignment score of 2 heads" in lines[0]


def test_all_heads_in_the_terminal_and_as_a_picture(run, tmp_path):
    lines, trace = selected(run, "--all")
    names = [name for line in lines for name in line.split() if re.fullmatch(r"\d\.\d\*?", name)]
    best = select_head(trace)
    expected = [f"{layer}.{head}" for layer in range(2) for head in range(2)]
    assert [name.rstrip("*") for name in names] == expected
    assert [name for name in names if "*" in name] == [f"{best.layer}.{best.head}*"]
    lines, _ = selected(run, "--all", "--png", str(tmp_path / "all.png"))
    assert lines == [f"wrote {tmp_path / 'all.png'}"]


def test_figure_of_all_heads_names_the_words_of_the_rows(run):
    lines, _ = selected(run, "--all", "--rows", "input")
    assert "decoder input ↓  reading →" in lines


def test_look_warns_of_text_unlike_the_training_data(run):
    done = CliRunner().invoke(app, ["look", str(run), "🙂🙂 🎉 صباح", "--target", TEXTS[1]])
    assert done.exit_code == 0, done.output
    assert done.stderr == (
        "warning: most characters of 1 sentence are not in the model's vocabulary, such as "
        "'🙂🙂 🎉 صباح'\n"
    )
    done = CliRunner().invoke(app, ["look", str(run), TEXTS[0], "--target", TEXTS[1]])
    assert done.stderr == ""


def test_open_shows_the_page_in_a_browser(run, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda uri: opened.append(uri) or True)
    page = tmp_path / "look.html"
    selected(run, "--open", "--html", str(page))
    lines, _ = selected(run, "--open")  # in a temporary file
    other = Path(lines[-1].removeprefix("wrote "))
    assert opened == [page.as_uri(), other.as_uri()]
    for path in (page, other):
        html = path.read_text(encoding="utf-8")
        assert "<title>the old cat → le vieux chat</title>" in html
    shutil.rmtree(other.parent)
    monkeypatch.setattr("webbrowser.open", lambda uri: False)
    lines, _ = selected(run, "--open", "--html", str(page))
    assert lines[-1] == f"no browser was found; the page is {page.as_uri()}"


def test_unknown_head_is_an_error(run):
    with pytest.raises(RegardError, match="there is no head 7 in cross.0. Choose from: 0, 1"):
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


@pytest.mark.filterwarnings("ignore")
def test_hf_model_is_loaded_without_foreign_output(folder, capfd, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    state = folder / "model.safetensors"
    shards = load_file(state)
    shards.pop(next(iter(shards)))  # transformers reports parameters that are missing
    save_file(shards, state, metadata={"format": "pt"})
    trace_hf_model(str(folder), "the cat look")
    assert capfd.readouterr() == ("", "")


@pytest.mark.filterwarnings("ignore")
def test_offline_error_is_one_line(capfd, monkeypatch, tmp_path):
    def fail(*arguments):
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    for name in ("HTTPS_PROXY", "https_proxy", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RegardError, match=r"^'no/such' is neither .* huggingface.co cannot be"):
        trace_hf_model("no/such", "the cat")
    assert capfd.readouterr() == ("", "")
