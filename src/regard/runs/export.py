"""Export of a run for programs that do not use regard."""

import shutil
from pathlib import Path

from regard._support import files
from regard.analysis import best_alignment_head
from regard.data import EncodedPairs
from regard.data.standalone import to_library_tokenizer
from regard.decoding.engines import save_ctranslate2, unsupported_part
from regard.errors import RegardError
from regard.models import Transformer
from regard.runs.run import Run

ALIGNMENT_PAIRS = 100  # held-out pairs over which the alignment head is chosen

README = """# {name}

A translation model for [CTranslate2](https://opennmt.net/CTranslate2/), exported by regard.

```python
import ctranslate2, tokenizers
translator = ctranslate2.Translator("{folder}")
source, target = (tokenizers.Tokenizer.from_file("{folder}/" + name) for name in {files})
result = translator.translate_batch([source.encode("{example}").tokens], beam_size={beam_size}, \
length_penalty={length_penalty})
print(target.decode([target.token_to_id(token) for token in result[0].hypotheses[0]]))
```

{alignment}
"""


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
    if not isinstance(run.model, Transformer) or unsupported_part(run.model):
        raise RegardError(f"CTranslate2 cannot represent {unsupported_part(run.model)}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RegardError(f"{out} must be a new or empty folder, but it has files")
    head = alignment_head(run)
    out.mkdir(parents=True, exist_ok=True)
    try:
        save_ctranslate2(
            run.model, run.tokenizers, out, alignment_head=head, quantization=quantization
        )
        names = _save_tokenizers(run, out)
        files.write_file(out / "README.md", _readme(run, out, names, head))
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise
    return f"wrote {out}: {_alignment_line(head)}"


def alignment_head(run: Run, num_pairs: int = ALIGNMENT_PAIRS) -> tuple[int, int] | None:
    """Return layer and head whose cross-attention aligns held-out pairs best.

    Returns:
        The head by `best_alignment_head`; None if the run has no held-out pairs.
    """
    folder = run.folder.data / "valid"
    if not EncodedPairs.is_complete(folder):
        return None
    pairs = EncodedPairs.load(folder)
    traces = []
    for index in range(min(num_pairs, len(pairs))):
        source, target = (side.tolist() for side in pairs.pair(index))
        traces.append(run.trace(run.tokenizers.source.decode(source), target))
    best = best_alignment_head(traces)
    return best.layer, best.head


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


def _readme(run: Run, out: Path, names: tuple[str, str], head: tuple[int, int] | None) -> str:
    line = _alignment_line(head)
    return README.format(
        name=run.name,
        folder=out.name,
        files=names,
        example="A sentence.",
        beam_size=run.settings.search.beam_size,
        length_penalty=run.settings.search.length_penalty,
        alignment=f"`translate_batch(…, {line.split()[0]}=True)` {line.partition(' ')[2]}.",
    )
