"""The page: architecture, parameters, tokenizers, modules and styles in one HTML document."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from regard._support.text import escape_control
from regard.browser.architecture import describe_model
from regard.browser.parameters import ParameterTable
from regard.config import SearchConfig
from regard.data import Tokenizer, Tokenizers
from regard.models import Seq2SeqModel
from regard.viz import STATIC_FOLDER as VIEWER_FOLDER
from regard.viz import bundle_modules, module_variable, render_document

STATIC_FOLDER = Path(__file__).parent / "static"
"""The folder of the page's JavaScript modules."""

_STYLE_SHEETS = (VIEWER_FOLDER / "viewer.css", STATIC_FOLDER / "translator.css")


_SERVE = f"{module_variable('worker')}.serve(self);"  # what the worker runs behind the modules


class TranslatorData(NamedTuple):
    """What the page's modules translate with.

    Attributes:
        record: architecture, tokenizers, search and texts, JSON-serializable.
        parameters: the parameters in base64.
    """

    record: dict[str, Any]
    parameters: str


def describe_translator(
    model: Seq2SeqModel,
    tokenizers: Tokenizers,
    search: SearchConfig,
    *,
    name: str,
    quantization: str = "float16",
    alignment_head: tuple[int, int] | None = None,
    examples: tuple[str, ...] = (),
    training_words: Collection[str] | None = None,
) -> TranslatorData:
    """Return a translator as the data that the page's modules read.

    Args:
        model: a `Transformer` or a `RecurrentModel`.
        tokenizers: of source and target.
        search: beam size and length penalty.
        name: of the model, for the title.
        quantization: type of the stored matrices: "float32", "float16" or "int8".
        alignment_head: layer and head of the decoder whose cross-attention shows which words belong
            together, and at which the viewer opens; by default the mean over the last layer's heads
            and the viewer's own choice.
        examples: sentences that the page offers.
        training_words: all source words of the training data in lower case, if they are known: the
            page names other words of a text.

    Raises:
        RegardError: if the page cannot compute a part of the model, or there is no such
            quantization.
    """
    table = ParameterTable(quantization)
    record = {
        "name": escape_control(name),
        "architecture": describe_model(model, table),
        "tensors": table.records,
        "max_positions": model.max_length,
        "search": {"beam_size": search.beam_size, "length_penalty": search.length_penalty},
        "alignment_head": alignment_head,
        "examples": examples,
        "training_words": None if training_words is None else sorted(training_words),
        "source_tokenizer": _describe_tokenizer(tokenizers.source),
        # a joint one is stored once
        "target_tokenizer": None
        if tokenizers.source is tokenizers.target
        else _describe_tokenizer(tokenizers.target),
    }
    return TranslatorData(record, table.to_base64())


def render_translator(data: TranslatorData) -> str:
    """Return an HTML page that translates in the browser and shows where the model looks.

    It needs no network, and its Content-Security-Policy forbids all connections. Equal data give
    equal pages.

    Args:
        data: what `describe_translator` returned.

    Example:
        >>> from regard.config import ModelConfig
        >>> from regard.data import train_tokenizer
        >>> from regard.models import build
        >>> tokenizer = train_tokenizer(["a cat", "a dog"])
        >>> model = build(ModelConfig(width=8, layers=1, heads=2), len(tokenizer)).eval()
        >>> tokenizers = Tokenizers(tokenizer, tokenizer)
        >>> data = describe_translator(model, tokenizers, SearchConfig(), name="tiny")
        >>> render_translator(data).startswith("<!DOCTYPE html>")
        True
    """
    start = (
        f"{module_variable('translatorPage')}.openTranslator("
        'document.getElementById("translator"), '
        "(id) => document.getElementById(id).textContent, "
        "document.currentScript.previousElementSibling.textContent"
        f" + {json.dumps(_SERVE)});\n"
    )
    return render_document(
        f"{data.record['name']} · regard",
        '<div id="translator"></div>\n<noscript>This page translates with JavaScript.</noscript>',
        # the modules have an element of their own, whose text the page runs in a worker, too
        scripts=[bundle_modules(STATIC_FOLDER, "translatorPage"), start],
        style="\n".join(sheet.read_text("utf-8") for sheet in _STYLE_SHEETS),
        data={"model": data.record, "parameters": data.parameters},
        policy="worker-src blob:",
    )


def _describe_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    return {"kind": tokenizer.kind, "pieces": tokenizer.pieces, "merges": tokenizer.merges}
