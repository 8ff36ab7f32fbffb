"""Export of a run for programs that do not use regard."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from regard._support import files
from regard._support.text import escape_markdown
from regard.analysis import best_alignment_head
from regard.data import BOS, EOS, PAD, EncodedPairs, to_library_tokenizer
from regard.data.phrasebook import AlignedPair, load_phrasebook, phrasebook_language
from regard.decoding.engines import save_ctranslate2, save_onnx, unsupported_part
from regard.errors import RegardError, unknown_name
from regard.models import Transformer
from regard.runs.engines import check_engine_names
from regard.runs.run import Run
from regard.runs.training_words import load_training_words

FORMATS = ("ctranslate2", "onnx", "html")
"""Names of the formats that `export_run` writes."""

NUM_EXAMPLES = 4  # sentences that an HTML page offers
ALIGNMENT_PAIRS = 100  # held-out pairs over which the alignment head is chosen

README_CTRANSLATE2 = """# {name}

A translation model for [CTranslate2](https://opennmt.net/CTranslate2/), exported by regard.

```python
import ctranslate2, tokenizers
translator = ctranslate2.Translator({folder})
source, target = (tokenizers.Tokenizer.from_file({folder} + "/" + name) for name in {files})
result = translator.translate_batch([source.encode("{example}").tokens], beam_size={beam_size}, \
length_penalty={length_penalty})
print(target.decode([target.token_to_id(token) for token in result[0].hypotheses[0]]))
```

{alignment}
"""

README_ONNX = """# {name}

A translation model in [ONNX](https://onnx.ai), exported by regard: `encoder.onnx`, and
`decoder.onnx`, one step of the decoder. Greedy search with ONNX Runtime:

```python
import numpy, onnxruntime, tokenizers
encoder, decoder = (onnxruntime.InferenceSession({folder} + "/" + name) for name in {graphs})
source, target = (tokenizers.Tokenizer.from_file({folder} + "/" + name) for name in {files})
ids = source.encode("{example}").ids
lengths = numpy.array([len(ids)])
outputs = encoder.run(None, {{"source": numpy.array([ids]), "lengths": lengths}})
state = dict(zip([output.name for output in encoder.get_outputs()], outputs))
names, written = [output.name.removeprefix("next_") for output in decoder.get_outputs()], [{bos}]
while written[-1] != {eos} and len(written) <= 2 * len(ids) + 20:
    inputs = {{"tokens": numpy.array(written[-1:]), "lengths": lengths}}
    logits, *outputs = decoder.run(None, inputs | state)
    state |= dict(zip(names[1:], outputs))
    logits[:, [{pad}, {bos}]] = -numpy.inf
    written.append(int(logits[0].argmax()))
print(target.decode([token for token in written[1:] if token != {eos}]))
```

| input | shape | |
|---|---|---|
| `source` | batch, source | token ids of the encoder, padded with {pad} |
| `lengths` | batch | number of tokens of each source |
| `tokens` | batch | the last token of each translation, {bos} at first |
{inputs}

`logits` (batch, token) precede the softmax. Each output `next_…` of the decoder is the input of the
next step. All sizes called by a name are dynamic.
"""


def export_run(
    run: Run, out: Path, to: str = "ctranslate2", quantization: str | None = None
) -> str:
    """Write a run with its tokenizers in another format, to be used without regard.

    Args:
        run: the run.
        out: folder to write; it must be new or empty. With "html" it is a file.
        to: one of `FORMATS`.
        quantization: type of the stored parameters, such as "int8"; by default float16 with
            "html" and float32 with the others, always with ONNX.

    Returns:
        One line that says what was written.

    Raises:
        RegardError: if there is no such format or quantization, the format cannot represent the
            model, the folder is not empty, or the file is not called .html.
        MissingExtraError: if the library of the format is not installed.
    """
    if to not in FORMATS:
        raise unknown_name("format", to, FORMATS)
    if to == "ctranslate2":
        return export_ctranslate2(run, out, quantization or "float32")
    if to == "html":
        return export_html(run, out, quantization or "float16")
    check_engine_names("auto", quantization)
    if quantization not in (None, "float32"):
        raise RegardError(
            f"quantization must be float32 for ONNX, but it is {quantization}; onnxruntime has "
            "tools that quantize a graph"
        )
    return export_onnx(run, out)


def export_ctranslate2(run: Run, out: Path, quantization: str = "float32") -> str:
    """Write a run as a CTranslate2 model with its tokenizers, to be used without regard.

    Args:
        run: the run.
        out: folder to write; it must be new or empty.
        quantization: type of the stored parameters, such as "int8".

    Returns:
        One line that says what was written.

    Raises:
        RegardError: if CTranslate2 cannot represent the model, or the folder is not empty.
        MissingExtraError: if CTranslate2 is not installed.

    Example:
        >>> import tempfile
        >>> import regard
        >>> folder = Path(tempfile.mkdtemp()) / "exported"
        >>> export_ctranslate2(regard.load("demo-model"), folder).startswith("wrote ")
        True
        >>> (folder / "model.bin").exists()
        True
    """
    check_engine_names("auto", quantization)
    if not isinstance(run.model, Transformer) or unsupported_part(run.model):
        raise RegardError(
            f"CTranslate2 cannot represent {unsupported_part(run.model)} of this model; to='onnx' "
            "can"
        )
    with _new_folder(out):
        head = alignment_head(run)
        save_ctranslate2(
            run.model, run.tokenizers, out, alignment_head=head, quantization=quantization
        )
        names = _save_tokenizers(run, out)
        files.write_file(out / "README.md", _ctranslate2_readme(run, out, names, head))
    return f"wrote {out}: {_alignment_line(head)}"


def export_onnx(run: Run, out: Path) -> str:
    """Write a run as two ONNX graphs, encoder and decoder step, with its tokenizers.

    Args:
        run: the run, a Transformer or a recurrent model.
        out: folder to write; it must be new or empty.

    Returns:
        One line that says what was written.

    Raises:
        RegardError: if the folder is not empty.
        MissingExtraError: if onnx or onnxscript is not installed.
    """
    with _new_folder(out):
        inputs = save_onnx(run.model, out)
        names = _save_tokenizers(run, out)
        files.write_file(out / "README.md", _onnx_readme(run, out, names, inputs))
    return f"wrote {out}: encoder.onnx, decoder.onnx (one step, with its state as input and output)"


def export_html(run: Run, out: Path, quantization: str = "float16") -> str:
    """Write a run as one HTML page that translates in the browser and shows where the model looks.

    Args:
        run: the run, a Transformer or a recurrent model.
        out: the file, such as "translator.html"; an older one is replaced.
        quantization: type of the stored parameters: "float32", "float16" or "int8".

    Returns:
        One line that says what was written.

    Raises:
        RegardError: if the page cannot compute a part of the model, there is no such quantization,
            or the file is not called .html.

    Example:
        >>> import tempfile
        >>> import regard
        >>> file = Path(tempfile.mkdtemp()) / "translator.html"
        >>> export_html(regard.load("demo-model"), file).startswith("wrote ")
        True
    """
    from regard.browser import describe_translator, render_translator  # above this package

    if out.suffix.lower() not in (".html", ".htm"):
        raise RegardError(f"out must be a file such as {out.name}.html, but it is {out}")
    data = describe_translator(
        run.model,
        run.tokenizers,
        run.settings.search,
        name=run.name,
        quantization=quantization,
        examples=_examples(run),
        training_words=load_training_words(run.folder),
    )
    # last, since it takes longest: what the page cannot compute is refused before
    head = {"alignment_head": alignment_head(run)}
    page = render_translator(data._replace(record=data.record | head))
    files.write_file(out, page)
    return f"wrote {out}: {len(page.encode()) / 2**20:.1f} MiB, opens in a browser without network"


@contextmanager
def _new_folder(out: Path) -> Iterator[None]:
    """Create a folder, which must be new or empty; leave it so if what follows fails."""
    with files.wrap_os_errors(out):
        is_new = not out.exists()
        if not is_new and (not out.is_dir() or any(out.iterdir())):
            raise RegardError(f"{out} must be a new or empty folder, but it has files")
        out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for path in [out] if is_new else list(out.iterdir()):
            _remove(path)
        raise


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, as far as it can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def alignment_head(run: Run, num_pairs: int = ALIGNMENT_PAIRS) -> tuple[int, int] | None:
    """Return layer and head whose cross-attention aligns held-out pairs best.

    Returns:
        The head by `best_alignment_head`; None if the run has no held-out pairs.
    """
    pairs = _held_out_pairs(run, num_pairs)
    if not pairs:
        return None
    best = best_alignment_head([run.trace(source, target) for source, target in pairs])
    return best.layer, best.head


def _held_out_pairs(run: Run, num_pairs: int) -> list[tuple[str, str | list[int]]]:
    """Return sources with targets or their tokens: the run's own, or the phrasebook's."""
    folder = run.folder.data / "valid"
    if EncodedPairs.is_complete(folder):
        encoded = EncodedPairs.load(folder)
        pairs = (encoded.pair(index) for index in range(min(num_pairs, len(encoded))))
        decode = run.tokenizers.source.decode
        return [(decode(source.tolist()), target.tolist()) for source, target in pairs]
    # the model that the package ships was trained on the phrasebook, and has no data beside it
    return [(pair.source, pair.target) for pair in _phrasebook_pairs(run)[:num_pairs]]


def _phrasebook_pairs(run: Run) -> Sequence[AlignedPair]:
    """Return the validation pairs of the phrasebook if the run was trained on it."""
    language = phrasebook_language(run.folder.read_settings()[1].get("dataset"))
    return load_phrasebook(language).valid if language else ()


def _examples(run: Run) -> tuple[str, ...]:
    """Return example sentences; other corpora than the phrasebook may not be public."""
    return tuple(pair.source for pair in _phrasebook_pairs(run)[:NUM_EXAMPLES])


def _save_tokenizers(run: Run, out: Path) -> tuple[str, str]:
    """Write the tokenizers; return the names of the source's and the target's file."""
    source, target = run.tokenizers
    names = ("tokenizer.json",) * 2
    if source is not target:
        names = ("source_tokenizer.json", "target_tokenizer.json")
    for name, tokenizer in zip(names, (source, target), strict=True):
        files.write_file(out / name, to_library_tokenizer(tokenizer).to_str(pretty=False) + "\n")
    return names


def _alignment_line(head: tuple[int, int] | None) -> str:
    if head is None:
        return "return_attention gives the mean over the heads of the last layer"
    return (
        f"return_attention gives layer {head[0]}, head {head[1]}, which aligns held-out pairs best"
    )


def _ctranslate2_readme(
    run: Run, out: Path, names: tuple[str, str], head: tuple[int, int] | None
) -> str:
    line = _alignment_line(head)
    return README_CTRANSLATE2.format(
        name=escape_markdown(run.name),
        folder=json.dumps(out.name),
        files=names,
        example="A sentence.",
        beam_size=run.settings.search.beam_size,
        length_penalty=run.settings.search.length_penalty,
        alignment=f"`translate_batch(…, {line.split()[0]}=True)` {line.partition(' ')[2]}.",
    )


def _onnx_readme(run: Run, out: Path, names: tuple[str, str], inputs: dict[str, str]) -> str:
    rows = [f"| `{name}` | {shape} | of the encoder's outputs |" for name, shape in inputs.items()]
    return README_ONNX.format(
        name=escape_markdown(run.name),
        folder=json.dumps(out.name),
        files=names,
        graphs=("encoder.onnx", "decoder.onnx"),
        example="A sentence.",
        pad=PAD,
        bos=BOS,
        eos=EOS,
        inputs="\n".join(rows),
    )
