"""Decoding: beam search, greedy search, sampling, and the translation of text.

How the files work together:

- `translation` is the entry for text: it tokenizes sentences, groups them by length (`batching`),
  searches the batches in parallel threads and detokenizes the results.
- `search` decodes token ids: `BeamSearch` keeps the beams and collects finished hypotheses,
  `topk` finds the best continuations without sorting the vocabulary; greedy search is a beam of
  one. `sampling` selects continuations at random instead.
- `hypothesis` holds what goes in and out: `LengthLimits`, `Hypothesis` with its per-token
  log-probabilities, and `DecodingCancelled`.

Any `regard.models.DecoderModel` can be searched; encoder-decoder models from source tokens:

    hypotheses = beam_search(model, source, lengths, beam_size=5, n_best=3)

and language models from a state:

    (hypothesis,) = greedy_search(model, model.init_state(), limits=LengthLimits(prefix=prompt))
"""

from regard.decoding.hypothesis import DecodingCancelled as DecodingCancelled
from regard.decoding.hypothesis import Hypothesis as Hypothesis
from regard.decoding.hypothesis import LengthLimits as LengthLimits
from regard.decoding.sampling import SamplingConfig as SamplingConfig
from regard.decoding.sampling import sample as sample
from regard.decoding.search import BeamSearch as BeamSearch
from regard.decoding.search import beam_search as beam_search
from regard.decoding.search import greedy_search as greedy_search
from regard.decoding.translation import Translation as Translation
from regard.decoding.translation import format_lines as format_lines
from regard.decoding.translation import translate as translate

__all__ = [
    "BeamSearch",
    "DecodingCancelled",
    "Hypothesis",
    "LengthLimits",
    "SamplingConfig",
    "Translation",
    "beam_search",
    "format_lines",
    "greedy_search",
    "sample",
    "translate",
]
