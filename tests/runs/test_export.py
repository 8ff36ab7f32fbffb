"""Exported runs work without regard."""

import ast
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import regard
from regard.config import ModelConfig
from regard.data import Tokenizer, train_tokenizer
from regard.data.vocabulary import to_library_tokenizer
from regard.models import build
from regard.runs import Run, export_ctranslate2, export_run
from regard.runs import export as export_module
from regard.runs.export import alignment_head

TEXT = "The old cat sees the dog."
TEXTS = ["le chat dort", "l'été à 9 heures", "猫 坐在 垫子 上"]


@pytest.mark.parametrize("kind", ["bpe", "words", "characters"])
def test_library_tokenizer_has_the_same_tokens(kind):
    tokenizer = train_tokenizer(TEXTS, kind, vocab_size=300)
    library = to_library_tokenizer(tokenizer)
    for text in [*TEXTS, "", "é́ 😀 x", "a\nb", "<end> <0x41> hi", "chat\t9"]:
        ids = tokenizer.encode(text)
        assert library.encode(text).ids == ids
        assert library.decode(ids) == tokenizer.decode(ids)
    assert isinstance(tokenizer, Tokenizer)


@pytest.mark.train  # it starts another Python
def test_readme_of_an_exported_run_translates_without_regard(tiny_run, tmp_path, unchecked):
    pytest.importorskip("ctranslate2", reason="the extra fast is not installed")
    run = regard.load(tiny_run)
    out = tmp_path / "exported"
    assert export_ctranslate2(run, out, "int8").startswith(f"wrote {out}: return_attention")
    code = re.search(r"```python\n(.*?)```", (out / "README.md").read_text(), re.DOTALL)[1]
    assert len(code.splitlines()) == 5
    code = code.replace("A sentence.", TEXT)
    program = f"import sys; sys.modules['regard'] = None\n{code}"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    expected = regard.load(tiny_run, quantization="int8").translate(TEXT)
    assert result.stdout == f"{expected}\n"


def test_attention_of_an_exported_run_is_that_of_the_best_alignment_head(
    tiny_run, tmp_path, unchecked
):
    ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra fast is not installed")
    run = regard.load(tiny_run)
    export_ctranslate2(run, tmp_path / "exported")
    layer, head = alignment_head(run)
    translation = run.translate(TEXT)
    tokens = [
        tokenizer.convert_ids_to_tokens(ids)
        for tokenizer, ids in zip(
            run.tokenizers, (run.tokenizers.source.encode(TEXT), translation.tokens), strict=True
        )
    ]
    translator = ctranslate2.Translator(str(tmp_path / "exported"))
    result = translator.translate_batch(
        [tokens[0]], [tokens[1]], max_decoding_length=len(tokens[1]), return_attention=True
    )
    cross = [one for one in run.trace(TEXT, translation).maps if one.kind == "cross"]
    expected = np.asarray(cross[layer].weights)[head][: len(tokens[1])]
    np.testing.assert_allclose(np.array(result[0].attention[0]), expected, atol=1e-4)


@pytest.mark.parametrize("to", ["ctranslate2", "onnx"])
def test_export_to_a_folder_with_files_is_refused(tiny_run, tmp_path, unchecked, to):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(regard.RegardError, match="must be a new or empty folder"):
        export_run(regard.load(tiny_run), tmp_path, to)
    assert (tmp_path / "note.txt").read_text() == "mine"


@pytest.mark.parametrize("exists", [False, True])
def test_failed_export_leaves_a_folder_as_it_was(tiny_run, tmp_path, monkeypatch, exists):
    out = tmp_path / "out"
    if exists:
        out.mkdir(mode=0o750)

    def fail(model, folder):
        (folder / "encoder.onnx").write_bytes(b"half a graph")
        (folder / "part").mkdir()
        raise regard.RegardError("the disk is full")

    monkeypatch.setattr(export_module, "save_onnx", fail)
    with pytest.raises(regard.RegardError, match="the disk is full"):
        export_run(regard.load(tiny_run), out, "onnx")
    assert out.exists() == exists
    if exists:
        assert not list(out.iterdir()) and out.stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("to", ["ctranslate2", "onnx"])
def test_folder_name_is_no_code_in_the_readme(tiny_run, tmp_path, unchecked, to):
    out = tmp_path / 'a"); print("b'
    export_run(regard.load(tiny_run), out, to)
    readme = (out / "README.md").read_text("utf-8")
    code = readme.partition("```python\n")[2].partition("```")[0]
    names = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    assert out.name in names


@pytest.mark.parametrize("to", ["ctranslate2", "onnx", "html"])
def test_export_to_an_impossible_path_is_refused_in_one_line(tiny_run, tmp_path, unchecked, to):
    out = tmp_path / f"{'a' * 300}.html"
    with pytest.raises(regard.RegardError, match="^cannot write .*: File name too long$"):
        export_run(regard.load(tiny_run), out, to)


def test_alignment_head_of_the_shipped_run_is_chosen_on_the_phrasebook(monkeypatch):
    run = regard.load("demo-model", engine="torch")
    assert not run.folder.data.exists()
    layer, head = alignment_head(run, num_pairs=10)
    cross = [one for one in run.trace(TEXT).maps if one.kind == "cross"]
    assert 0 <= layer < len(cross) and 0 <= head < len(cross[layer].weights)


def page_record(page):
    return json.loads(re.search(r'id="model">(.*?)</script>', page.read_text("utf-8"))[1])


def test_page_of_a_run_has_its_search_and_its_alignment_head(tiny_run, tmp_path, unchecked):
    run = regard.load(tiny_run, engine="torch")
    out = tmp_path / "translator.html"
    assert re.fullmatch(rf"wrote {re.escape(str(out))}: \d\.\d MiB, .*", run.export(out, "html"))
    page, record = out.read_text("utf-8"), page_record(out)
    assert record["search"] == {"beam_size": 5, "length_penalty": 1.0}
    assert record["alignment_head"] == list(alignment_head(run))
    assert {tensor["dtype"] for tensor in record["tensors"]} == {"float16", "float32"}
    assert run.export(out, "html") and out.read_text("utf-8") == page  # equal runs, equal bytes


def test_only_the_phrasebook_gives_the_page_examples(tiny_run, tmp_path, unchecked, monkeypatch):
    run, out = regard.load(tiny_run, engine="torch"), tmp_path / "translator.html"
    run.export(out, "html")
    assert len(page_record(out)["examples"]) == 4
    settings, _ = run.folder.read_settings()
    monkeypatch.setattr(type(run.folder), "read_settings", lambda self: (settings, {}))
    run.export(out, "html")
    assert page_record(out)["examples"] == []


def test_page_of_the_shipped_run_is_small(tmp_path):
    out = tmp_path / "translator.html"
    export_run(regard.load("demo-model", engine="torch"), out, "html")
    assert out.stat().st_size < 4 * 2**20


def test_page_of_a_model_that_it_cannot_compute_is_refused_by_its_part(
    tiny_run, tmp_path, unchecked
):
    run = regard.load(tiny_run, engine="torch")
    model = build(
        ModelConfig(width=12, layers=1, heads=2, score="average"), run.tokenizers.vocab_sizes
    )
    other = Run(run.folder, run.settings, run.tokenizers, model, run.engine)
    with pytest.raises(regard.RegardError, match=r"compute the score \w+; to='onnx' can"):
        other.export(tmp_path / "translator.html", "html")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["onnx", "onnxscript"])
def test_onnx_export_names_the_missing_extra(tiny_run, tmp_path, unchecked, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    out = tmp_path / "exported"
    with pytest.raises(regard.RegardError, match=rf"ONNX export needs {package}, .*regard\[onnx\]"):
        export_run(regard.load(tiny_run), out, "onnx")
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("onx",), "no format is called 'onx'. Did you mean 'onnx'?"),
        (("onnx", "int8"), "quantization must be float32 for ONNX, but it is int8"),
        (("onnx", "int9"), "no quantization is called 'int9'. Did you mean 'int8'?"),
        (("html",), "out must be a file such as exported.html, but it is "),
        (("ctranslate2", "int9"), "no quantization is called 'int9'. Did you mean 'int8'?"),
    ],
)
def test_wrong_format_or_quantization_is_refused(tiny_run, tmp_path, unchecked, arguments, message):
    out = tmp_path / "exported"
    with pytest.raises(regard.RegardError) as caught:
        export_run(regard.load(tiny_run), out, *arguments)
    assert message in str(caught.value)
    assert not out.exists()


def test_model_that_ctranslate2_cannot_represent_is_refused_by_its_part(
    tiny_run, tmp_path, unchecked
):
    run = regard.load(tiny_run, engine="torch")
    config = ModelConfig(width=12, layers=1, heads=2, positions="alibi")
    model = build(config, run.tokenizers.vocab_sizes)
    other = Run(run.folder, run.settings, run.tokenizers, model, run.engine)
    with pytest.raises(regard.RegardError, match=r"represent ALiBi positions .* to='onnx' can"):
        export_ctranslate2(other, tmp_path / "exported")
