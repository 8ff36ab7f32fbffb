"""What the verb look does: where a run or a Hugging Face model looks, as any picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.capture import watch
from regard.decoding.translation import translate
from regard.errors import RegardError
from regard.runs.run import load
from regard.runs.tracing import retrace
from regard.trace import Tokens, Trace, merged
from regard.viz import figures, heatmap, save_page
from regard.viz.text import picture

if TYPE_CHECKING:
    import torch

SPOKEN = 128  # tokens that an encoder-decoder model of others may say


class Place(NamedTuple):
    """Which head to show; None for cross-attention, and for the first head."""

    kind: str | None = None
    layer: int = 0
    head: int | None = None


def of_run(path: Path, sentence: str, target: str | None = None) -> Trace:
    """Let a run translate a sentence, or say a given target, and record where it looks."""
    run, sentence = load(path), sentence.strip()  # as `translate` reads it
    said: str | Sequence[int]
    if target is None:
        (texts,) = translate(run.model, run.tokenizers, [sentence], run.settings.search)
        said = texts[0].tokens
    else:
        said = target.strip()
    if not sentence or not said:
        raise RegardError(f"there must be words to look at, but there are none in {sentence!r}")
    return retrace(run.model, run.tokenizers, sentence, said, name=run.name)


def of_hugging_face(name: str, text: str) -> Trace:
    """Let a model that transformers can load read a text, and record where it looks.

    A model with encoder and decoder first says what it would say, and is then watched saying it.
    """
    try:
        import transformers
    except ImportError as problem:
        raise RegardError("--hf needs transformers: pip install 'regard[hf]'") from problem
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name)
        config = transformers.AutoConfig.from_pretrained(name)
        kind = (
            transformers.AutoModelForSeq2SeqLM
            if config.is_encoder_decoder
            else transformers.AutoModel
        )
        model = kind.from_pretrained(name).eval()
    except (OSError, ValueError, KeyError) as problem:
        why = str(problem).strip().splitlines()[0]
        raise RegardError(f"transformers cannot load {name!r}: {why}") from problem
    return _watched(model, tokenizer, text, config.is_encoder_decoder, name)


def _watched(model: Any, tokenizer: Any, text: str, speaks: bool, name: str) -> Trace:
    import torch

    inputs = tokenizer(text, return_tensors="pt")
    source, target = _tokens(tokenizer, inputs["input_ids"][0], inputs), None
    if len(source) == 0:
        raise RegardError(f"there must be words to look at, but there are none in {text!r}")
    with torch.inference_mode():
        if speaks:
            said = model.generate(**inputs, max_new_tokens=SPOKEN, num_beams=1, do_sample=False)
            inputs["decoder_input_ids"] = said[:, :-1] if said.shape[1] > 1 else said
            target = _tokens(tokenizer, inputs["decoder_input_ids"][0])
        with watch(model) as seen:
            model(**inputs)
    return seen.trace(source, target, title=name)


def _tokens(tokenizer: Any, ids: "torch.Tensor", encoding: Any = None) -> Tokens:
    numbers = ids.tolist()
    words = None
    if encoding is not None and getattr(encoding, "is_fast", False):
        words = tuple(encoding.word_ids(0))
    special = set(tokenizer.all_special_ids)
    return Tokens(
        tuple(tokenizer.convert_ids_to_tokens(numbers)),
        words,
        special=tuple(n for n, number in enumerate(numbers) if number in special),
    )


def draw(trace: Trace, place: Place, words: bool, paths: Mapping[str, Path]) -> str:
    """Write pictures of a trace to files, by format; without any, draw it as text."""
    trace = merged(trace) if words else trace
    if not paths:
        return picture(trace, *place)
    for kind, path in paths.items():
        if kind == "html":
            save_page(trace, path, *place)
        else:
            heatmap.save(figures.one(trace, *place), path, kind)
    return "\n".join(f"the picture: {path}" for path in paths.values())
