"""The parts of a translation or an evaluation that threads and processes share.

Each is a function of plain values, which JSON can hold, so that items and results can be sent to
other processes that have loaded the same run. Floats survive JSON unchanged.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from regard.analysis import word_level_cross_attention
from regard.config import SearchConfig
from regard.data import Tokenizers, WordSpans, collate_tokens
from regard.decoding import (
    SamplingConfig,
    SentenceBatch,
    Translation,
    TranslationOptions,
    sentence_batches,
)
from regard.decoding.engines import Engine, TorchEngine
from regard.evaluation import teacher_forced_nll
from regard.models import Seq2SeqModel
from regard.runs.tracing import trace_translation
from regard.trace import TokenList, Trace

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""Applies a function to items, and returns the results in their order, such as `parallel_map`."""


class RunTasks:
    """Functions of one item each, over a model and its tokenizers.

    Args:
        model: a translation model in evaluation mode.
        tokenizers: its tokenizers.
        should_stop: cancels a translation when it returns True.
        engine: what translates; torch by default.
    """

    def __init__(
        self,
        model: Seq2SeqModel,
        tokenizers: Tokenizers,
        should_stop: Callable[[], bool] | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.model, self.tokenizers, self.should_stop = model, tokenizers, should_stop
        self.engine = TorchEngine(model, tokenizers) if engine is None else engine

    def translate(self, item: dict[str, Any]) -> dict[str, Any]:
        """Translate one batch of sentences, and trace the best translations if asked to."""
        search, sampling = SearchConfig(**item["search"]), item["sampling"]
        sampling = None if sampling is None else SamplingConfig(**sampling)
        lengths = item["min_length"], item["max_length"]
        options = TranslationOptions(search, item["n_best"], sampling, *lengths)
        batch = SentenceBatch(*item["batch"])
        results = self.engine.translate_batch(batch, options, self.should_stop)
        traces = [
            self._trace(text, best.tokens, item["name"])
            for text, (best, *_) in zip(item["traced"], results, strict=bool(item["traced"]))
        ]
        with_scores = options.n_best > 1
        translations = [
            [
                (each.text, each.tokens, *(each.scores if with_scores else ()))
                for each in alternatives
            ]
            for alternatives in results
        ]
        return {"translations": translations, "traces": traces}

    def _trace(self, source: str, tokens: Sequence[int], name: str) -> str:
        if not tokens:
            return empty_trace(source, name)
        return trace_translation(
            self.model, self.tokenizers, source.strip(), tokens, name=name
        ).to_json()

    @torch.no_grad()
    def nll(self, item: Sequence[Sequence[list[int]]]) -> tuple[float, int]:
        """Return the negative log-likelihood of the targets of pairs, and their tokens."""
        batch = collate_tokens([(source, target) for source, target in item]).to(
            self.model.output_weight.device
        )
        return float(teacher_forced_nll(self.model, batch)), batch.target_tokens

    def align(self, item: Sequence[Any]) -> dict[str, Any]:
        """Return the links of every cross-attention head for one pair, in both directions.

        Args:
            item: source and target, and the spans of their words.

        Returns:
            "source" and "target", the indices of their words; "forward", by layer and head the
            best source word of each target word, as a position in "source", or -1 if its weights
            are 0; "backward", the same for source words.
        """
        source, target, *spans = item
        source_spans, target_spans = ([tuple(span) for span in side] for side in spans)
        trace = trace_translation(
            self.model,
            self.tokenizers,
            source,
            target,
            words=WordSpans(source_spans, target_spans),
        )
        weights, source_words, target_words = word_level_cross_attention(trace)
        return {
            "source": source_words,
            "target": target_words,
            "forward": np.where(weights.any(-1), weights.argmax(-1), -1).tolist(),
            "backward": np.where(weights.any(-2), weights.argmax(-2), -1).tolist(),
        }


def translation_items(
    model: Seq2SeqModel,
    tokenizers: Tokenizers,
    sentences: Sequence[str],
    options: TranslationOptions,
    *,
    prefixes: Sequence[str] | None = None,
    first: int = 0,
    traced_as: str | None = None,
) -> list[dict[str, Any]]:
    """Return the items for `RunTasks.translate` that translate some sentences.

    Args:
        model: the model.
        tokenizers: its tokenizers.
        sentences: the sources.
        options: how they are translated.
        prefixes: what the translations begin with, one for each sentence.
        first: number of the first sentence among all that are translated.
        traced_as: name of the model in traces of the translations; None for no traces.
    """
    batches = sentence_batches(model, tokenizers, sentences, options, prefixes, first)
    return [
        {
            "batch": batch,
            "search": asdict(options.search),
            "n_best": options.n_best,
            "sampling": None if options.sampling is None else asdict(options.sampling),
            "min_length": options.min_length,
            "max_length": options.max_length,
            "name": traced_as,
            "traced": [] if traced_as is None else [sentences[row] for row in batch.rows],
        }
        for batch in batches
    ]


def read_translations(result: dict[str, Any]) -> list[list[Translation]]:
    """Return the translations in a result of `RunTasks.translate`, which may come from JSON.

    They have scores only if there are several of each sentence: no command shows them otherwise,
    and an engine may have to compute them.
    """
    return [
        [_read_translation(*values) for values in alternatives]
        for alternatives in result["translations"]
    ]


def _read_translation(
    text: str,
    tokens: Sequence[int],
    log_prob: float = 0.0,
    token_log_probs: Sequence[float] = (),
    score: float = 0.0,
) -> Translation:
    return Translation(text, tuple(tokens), log_prob, tuple(token_log_probs), score)


def empty_trace(source: str, name: str) -> str:
    """Return the trace of an empty translation, without maps, as JSON."""
    empty = {"source": TokenList(()), "target": TokenList(()), "decoder_input": TokenList(())}
    return Trace(tokens=empty, maps=(), title=source, model=name).to_json()
