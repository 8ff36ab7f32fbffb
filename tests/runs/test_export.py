"""Exported runs work without regard."""

import re
import subprocess
import sys

import numpy as np
import pytest

import regard
from regard.data import Tokenizer, train_tokenizer
from regard.data.standalone import to_library_tokenizer
from regard.runs import export_ctranslate2
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


def test_export_to_a_folder_with_files_is_refused(tiny_run, tmp_path, unchecked):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(regard.RegardError, match="must be a new or empty folder"):
        export_ctranslate2(regard.load(tiny_run), tmp_path)
    assert (tmp_path / "note.txt").read_text() == "mine"
