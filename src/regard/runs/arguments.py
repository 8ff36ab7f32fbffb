"""Arguments of `Run`: their checks, and the settings of search and sampling made of them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypedDict

from regard._support.arguments import to_integer
from regard._support.text import count
from regard.config import SearchConfig
from regard.decoding import SamplingConfig
from regard.errors import RegardError, wrong_type


class TranslateOptions(TypedDict, total=False):
    """Optional arguments of `Run.translate`."""

    beam_size: int | None
    length_penalty: float | None
    sample: bool
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None
    min_length: int
    max_length: int | None
    prefix: str | Sequence[str] | None
    progress: bool


def to_strings(name: str, given: str | Iterable[str]) -> list[str]:
    """Return one string or several as a list; raise TypeError if it is something else."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise wrong_type(name, "a string or several of them", given)
    texts = list(given)
    for text in texts:
        if not isinstance(text, str):
            raise wrong_type(f"each {name}", "a string", text)
    return texts


def _integers_given(**values: int | None) -> dict[str, int]:
    """Return the values that are not None as integers, by the name of their argument."""
    return {name: to_integer(name, value) for name, value in values.items() if value is not None}


def search_config(
    config: SearchConfig, beam_size: int | None, length_penalty: float | None, sample: bool = False
) -> SearchConfig:
    """Return the settings of the search with the arguments that are given."""
    given: dict[str, Any] = dict(_integers_given(beam_size=beam_size))
    if length_penalty is not None:
        given["length_penalty"] = length_penalty
    if sample and given:
        raise RegardError(f"{next(iter(given))}= belongs to beam search; leave it out with sample=")
    try:
        return replace(config, **given)
    except RegardError as error:  # it names the setting
        raise RegardError(str(error).removeprefix("search.")) from error


def sampling_config(
    sample: bool,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
) -> SamplingConfig | None:
    """Return the settings of sampling; None for beam search."""
    options = {"temperature": temperature, "top_p": top_p}
    given: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
    given |= _integers_given(top_k=top_k, seed=seed)
    if not sample and given:
        raise RegardError(f"{next(iter(given))}= belongs to sampling; give sample=, too")
    return SamplingConfig(**given) if sample else None


def expand_prefix(prefix: str | Sequence[str] | None, sentences: int) -> list[str] | None:
    """Return a prefix for each sentence."""
    if prefix is None or isinstance(prefix, str):
        return [prefix] * sentences if prefix else None
    prefixes = to_strings("prefix", prefix)
    if len(prefixes) != sentences:
        raise RegardError(
            f"prefix must be one text, or one for each of {count(sentences, 'sentence')}, but "
            f"there are {len(prefixes)}"
        )
    return prefixes
