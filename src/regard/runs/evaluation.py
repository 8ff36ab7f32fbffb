"""Evaluation of a translation model on a test set."""

from collections.abc import Iterable, Sequence
from math import inf
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from regard._support.progress import track
from regard._support.resources import parallel_map
from regard._support.text import shorten
from regard.analysis import Link, symmetrise
from regard.config import DataConfig, RunConfig
from regard.data import (
    Pair,
    WordSpans,
    batch_by_length,
    encode_pairs,
    pair_lines,
    read_lines,
    read_pairs,
    whitespace_spans,
)
from regard.decoding import TranslationOptions
from regard.errors import RegardError, wrong_type
from regard.evaluation import (
    AlignmentReport,
    EvaluationReport,
    corpus_alignment_error_rate,
    corpus_scores,
    exact_match,
    is_chinese,
    perplexity,
)
from regard.runs.tasks import Map, RunTasks, read_translations, translation_items

UNLIMITED = 10**9

Lines = str | PathLike[str] | Iterable[str]
"""A file of lines, or the lines themselves."""

GoldLinks = Lines | Iterable[Iterable[tuple[int, int]]]
"""Gold alignments: a file, lines such as `0-0 1-2`, or pairs of word numbers for each sentence."""


def read_test_set(source: Lines, reference: Lines, gold: GoldLinks | None = None) -> list[Pair]:
    """Return the pairs of a test set, from files or from lists of sentences.

    Raises:
        RegardError: if there are none, or not equally many on each side.
    """
    given = (source, reference) if gold is None else (source, reference, gold)
    for argument, lines in zip(("source", "reference", "gold"), given, strict=False):
        if not isinstance(lines, str | PathLike | Iterable):
            raise wrong_type(argument, "a file or a list of lines", lines)
    paths = [Path(one) for one in given if isinstance(one, str | PathLike)]
    if len(paths) == len(given):
        pairs = list(read_pairs(paths[:2], *paths[2:]))
    else:
        links = None if gold is None else _lines("gold", gold)
        sides = _lines("source", source), _lines("reference", reference)
        pairs = list(pair_lines(*sides, links))
    if not pairs:
        name = paths[0] if isinstance(source, str | PathLike) else "source"
        raise RegardError(f"{name} must have sentences, but it is empty")
    return pairs


def _lines(name: str, given: GoldLinks) -> list[str]:
    if isinstance(given, str | PathLike):
        return list(read_lines(Path(given)))
    return [_to_line(name, each) for each in given]


def _to_line(name: str, given: Any) -> str:
    """Return a sentence, or the links of one in Pharaoh format."""
    if isinstance(given, str):
        return given
    if name != "gold":
        raise wrong_type(f"each {name}", "a string", given)
    try:
        return " ".join(f"{left}-{right}" for left, right in given)
    except (TypeError, ValueError) as error:
        raise RegardError(
            "gold must be lines such as 0-0 1-2, or pairs of word numbers, but one is "
            f"{shorten(given)}"
        ) from error


def evaluate_pairs(
    tasks: RunTasks,
    pairs: Sequence[Pair],
    settings: RunConfig,
    *,
    has_gold: bool = False,
    progress: bool = False,
    map: Map = parallel_map,
) -> EvaluationReport:
    """Translate the sources of pairs, and compare the results with their targets.

    Args:
        tasks: the model and its tokenizers.
        pairs: sources and references, with links for the alignment error rate.
        settings: of the search, and the size of a batch.
        has_gold: whether the links are gold alignments.
        progress: whether to report progress on stderr.
        map: applies a function of `tasks` to items. Results do not depend on how it shares them.
    """
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    translations = translate_all(
        tasks, sources, TranslationOptions(settings.search), map, progress=progress
    )
    bleu_score, chrf_score = corpus_scores(translations, references, chinese=is_chinese(references))
    loss = reference_loss(tasks, pairs, settings.train.batch_tokens, map)
    return EvaluationReport(
        bleu_score=bleu_score,
        chrf_score=chrf_score,
        exact_match=exact_match(translations, references),
        perplexity=perplexity(loss),
        alignment=evaluate_alignment(tasks, pairs, map, progress) if has_gold else None,
    )


def translate_all(
    tasks: RunTasks,
    sentences: Sequence[str],
    options: TranslationOptions,
    map: Map = parallel_map,
    *,
    progress: bool = False,
) -> list[str]:
    """Return the best translation of each sentence."""
    items = translation_items(tasks.model, tasks.tokenizers, sentences, options)
    texts = [""] * len(sentences)
    total = sum(len(item["batch"].rows) for item in items)
    for item, result in track(
        zip(items, map(tasks.translate, items), strict=True),
        "sentences",
        total,
        size=lambda pair: len(pair[0]["batch"].rows),
        visible=progress,
    ):
        for row, (best, *_) in zip(item["batch"].rows, read_translations(result), strict=True):
            texts[row] = best.text
    return texts


def reference_loss(
    tasks: RunTasks, pairs: Sequence[Pair], batch_tokens: int = 4096, map: Map = parallel_map
) -> float:
    """Return the negative log-likelihood per token of the references.

    Pairs with an empty side, or with more tokens than the model has positions, are left out.
    """
    model = tasks.model
    limit = UNLIMITED if model.max_length is None else model.max_length - 1
    config = DataConfig(max_length=limit, max_length_ratio=inf)
    with TemporaryDirectory() as folder:
        encoded = encode_pairs(pairs, tasks.tokenizers, config, Path(folder))
        if not len(encoded):
            raise RegardError("perplexity needs pairs with words on both sides, but there are none")
        batches = batch_by_length(encoded, batch_tokens, seed=0, epoch=0)
        items = (
            [[side.tolist() for side in encoded.pair(index)] for index in rows.tolist()]
            for rows in batches
        )
        results = list(map(tasks.nll, items))
    nll, tokens = (float(sum(column)) for column in zip(*results, strict=True))
    return nll / tokens


def evaluate_alignment(
    tasks: RunTasks, pairs: Sequence[Pair], map: Map = parallel_map, progress: bool = False
) -> AlignmentReport:
    """Compare the alignment of the best cross-attention head with gold links.

    The head is chosen without them, by its agreement with itself in both directions, as one would
    for text without gold links. Pairs with an empty side are left out.
    """
    pairs = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    if not pairs:
        raise RegardError("an alignment needs pairs with words on both sides, but there are none")
    words = [_word_spans(pair) for pair in pairs]
    items = (
        (pair.source, pair.target, own.source, own.target)
        for pair, own in zip(pairs, words, strict=True)
    )
    results = list(
        track(map(tasks.align, items), "sentences aligned", len(pairs), visible=progress)
    )
    agreements = np.asarray(sum(_count_agreements(result) for result in results))
    layer, head = divmod(int(agreements.argmax()), agreements.shape[1])
    predicted = [_head_links(result, layer, head) for result in results]
    gold = [set(own.links or ()) for own in words]
    return AlignmentReport(corpus_alignment_error_rate(predicted, gold), layer, head)


def _count_agreements(links: dict[str, Any]) -> Any:
    """Count by layer and head the target words that are the best ones of their best source word."""
    forward, backward = np.asarray(links["forward"]), np.asarray(links["backward"])
    if not forward.size or not backward.size:
        return np.zeros(forward.shape[:2], dtype=np.int64)
    returned = np.take_along_axis(backward, np.maximum(forward, 0), axis=-1)
    agrees = (returned == np.arange(forward.shape[-1])) & (forward >= 0)
    return agrees.sum(-1)


def _head_links(links: dict[str, Any], layer: int, head: int) -> set[Link]:
    """Return the symmetrised links of one head, between word indices."""
    source, target = links["source"], links["target"]
    forward, backward = (links[name][layer][head] for name in ("forward", "backward"))
    symmetric = symmetrise(
        {(best, n) for n, best in enumerate(forward) if best >= 0},
        {(n, best) for n, best in enumerate(backward) if best >= 0},
    )
    return {(source[s], target[t]) for s, t in symmetric}


def _word_spans(pair: Pair) -> WordSpans:
    source, target = whitespace_spans(pair.source), whitespace_spans(pair.target)
    links = [(source.index(left), target.index(right)) for left, right in pair.links]
    return WordSpans(source, target, links)
