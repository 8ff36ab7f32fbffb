"""Sentences in, translations out."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple
from warnings import warn

import torch
from torch import nn

from regard._support.progress import track
from regard._support.threads import cores, side_by_side
from regard.config import MAX_SEED, SearchConfig
from regard.data import Tokenizers, pad_sequences
from regard.decoding import search
from regard.decoding.batching import groups_of, longest_text
from regard.decoding.search import Hypothesis, LengthLimits
from regard.errors import RegardError
from regard.models.protocols import Seq2SeqModel, encoded, longest


class Translation(NamedTuple):
    """One translation, and how likely the model finds it."""

    text: str
    tokens: tuple[int, ...]  # without start and end
    log_probability: float
    score: float  # by which alternatives are ranked


class SamplingConfig(NamedTuple):
    """How to draw translations instead of looking for the best."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None

    def of_group(self, number: int) -> "SamplingConfig":
        """Give each group of sentences a seed of its own, so that none repeats another's draws."""
        if self.seed is None:
            return self
        return self._replace(seed=(self.seed + 1_000_003 * number) % MAX_SEED)


def translate(
    model: nn.Module,
    tokenizers: Tokenizers,
    sentences: Sequence[str],
    settings: SearchConfig | None = None,
    *,
    nbest: int = 1,
    chance: SamplingConfig | None = None,
    told: bool = False,
) -> list[list[Translation]]:
    """Give the best translations of each sentence, best first; of an empty one, an empty one.

    Sentences of like length are translated together, and come back in the order they came.

    Args:
        nbest: how many for each sentence; with more than there are beams, beams are added.
        told: whether to tell on stderr how many are done.
    """
    assert isinstance(model, Seq2SeqModel)
    settings = _fitting(SearchConfig() if settings is None else settings, nbest, chance)
    # spaces around a sentence are no part of it, as in the pairs that it was learned from
    sources = tokenizers.source.encode_batch([sentence.strip() for sentence in sentences])
    sources = _cut(sources, longest(model))
    results = [[Translation("", (), 0.0, 0.0)] * nbest for _ in sentences]
    # what is drawn depends on who is drawn together, which must not depend on the machine
    beams, threads = (1, 1) if chance else (settings.beam_size, cores())
    groups = list(groups_of(sources, beams, threads))

    def search_group(numbered: tuple[int, list[int]]) -> list[list[Hypothesis]]:
        number, rows = numbered
        some = [sources[row] for row in rows]
        return _search(model, some, settings, nbest, chance and chance.of_group(number))

    done = zip(groups, side_by_side(search_group, enumerate(groups)), strict=True)
    total = sum(map(len, groups))
    for rows, found in track(done, "sentences", total, size=lambda g: len(g[0]), shown=told):
        for row, texts in zip(rows, found, strict=True):
            results[row] = [_translation(text, tokenizers) for text in texts]
    return results


def _fitting(settings: SearchConfig, nbest: int, chance: SamplingConfig | None) -> SearchConfig:
    """Refuse what cannot be asked for, and have as many beams as translations."""
    if nbest < 1:
        raise RegardError(f"nbest must be 1 or more, but it is {nbest}")
    if chance is not None and nbest > 1:
        raise RegardError(f"one translation is drawn by chance, not {nbest}; other seeds draw more")
    if chance is not None and not 0 < chance.temperature < inf:
        raise RegardError(f"temperature must be above 0 and finite, not {chance.temperature}")
    if chance is not None and not 0 <= (chance.seed or 0) <= MAX_SEED:
        raise RegardError(f"seed must be from 0 to {MAX_SEED}, not {chance.seed}")
    return replace(settings, beam_size=max(settings.beam_size, nbest))


def _cut(sources: list[list[int]], room: int | None) -> list[list[int]]:
    """Cut sources to what the model has positions for, and warn of it."""
    over = 0 if room is None else sum(len(source) > room for source in sources)
    if over:
        warn(
            f"sentences must have at most {room} tokens, as many as the model has positions, "
            f"but {over} of {len(sources)} have more; the rest of them is not translated",
            stacklevel=3,
        )
    return [source[:room] for source in sources]


@torch.inference_mode()
def _search(
    model: Seq2SeqModel,
    sources: Sequence[Sequence[int]],
    settings: SearchConfig,
    nbest: int,
    chance: SamplingConfig | None,
) -> list[list[Hypothesis]]:
    device = model.output_weight.device
    source, lengths = pad_sequences(sources)
    past = model.start(encoded(model, source.to(device), lengths.to(device)))
    most, room = longest_text(int(lengths.max())), longest(model)
    limits = LengthLimits(
        longest=most if room is None else min(most, room - 1)
    )  # the start takes one
    if chance is not None:
        drawn = search.sample(model, past, len(sources), **chance._asdict(), limits=limits)
        return [[text] for text in drawn]
    return search.beam(
        model,
        past,
        len(sources),
        beams=settings.beam_size,
        nbest=nbest,
        penalty=settings.length_penalty,
        limits=limits,
    )


def _translation(found: Hypothesis, tokenizers: Tokenizers) -> Translation:
    return Translation(
        tokenizers.target.decode(found.tokens), found.tokens, found.log_probability, found.score
    )


def line(texts: Sequence[Translation]) -> str:
    """Write a translation as a line; of several, each with its score and a tab before it."""
    if len(texts) == 1:
        return _flat(texts[0].text)
    return "\n".join(f"{text.score:.4f}\t{_flat(text.text)}" for text in texts)


def _flat(text: str) -> str:
    """Keep a text on its line, whatever the model wrote."""
    return " ".join(text.splitlines())
