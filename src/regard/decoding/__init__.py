"""Decoding: beam search, greedy search, sampling, and the translation of text.

How the files work together:

- `translation` is the entry for text: it tokenizes sentences, groups them by length (`batching`)
  and has an engine translate the batches in parallel threads. Batches are plain values
  (`sentence_batches`), so that other processes can share them.
- `engines` translate a batch: torch, which searches as follows, or CTranslate2.
- `search` decodes token ids: `BeamSearch` keeps the beams and collects finished hypotheses,
  `topk` finds the best continuations without sorting the vocabulary; greedy search is a beam of
  one. `sampling` selects continuations at random instead, and `prefix` restricts them to those
  that spell a given text.
- `hypothesis` holds what goes in and out: `LengthLimits`, `Hypothesis` with its per-token
  log-probabilities, and `DecodingCancelled`.

Any `regard.models.DecoderModel` can be searched; encoder-decoder models from source tokens::

    hypotheses = beam_search(model, source, lengths, beam_size=5, n_best=3)

and language models from a state::

    (hypothesis,) = greedy_search(model, model.init_state(), limits=LengthLimits(prefix=prompt))
"""

from regard.decoding.engines import CTranslate2Engine as CTranslate2Engine
from regard.decoding.engines import Engine as Engine
from regard.decoding.engines import TorchEngine as TorchEngine
from regard.decoding.hypothesis import DecodingCancelled as DecodingCancelled
from regard.decoding.hypothesis import Hypothesis as Hypothesis
from regard.decoding.hypothesis import LengthLimits as LengthLimits
from regard.decoding.prefix import AllowedTokens as AllowedTokens
from regard.decoding.prefix import TextPrefixes as TextPrefixes
from regard.decoding.sampling import SamplingConfig as SamplingConfig
from regard.decoding.sampling import sample as sample
from regard.decoding.search import BeamSearch as BeamSearch
from regard.decoding.search import ShouldStop as ShouldStop
from regard.decoding.search import beam_search as beam_search
from regard.decoding.search import greedy_search as greedy_search
from regard.decoding.sentences import SentenceBatch as SentenceBatch
from regard.decoding.sentences import Translation as Translation
from regard.decoding.sentences import TranslationOptions as TranslationOptions
from regard.decoding.sentences import TranslationScores as TranslationScores
from regard.decoding.translation import sentence_batches as sentence_batches
from regard.decoding.translation import translate as translate

__all__ = [
    "AllowedTokens",
    "BeamSearch",
    "CTranslate2Engine",
    "DecodingCancelled",
    "Engine",
    "Hypothesis",
    "LengthLimits",
    "SamplingConfig",
    "SentenceBatch",
    "ShouldStop",
    "TextPrefixes",
    "TorchEngine",
    "Translation",
    "TranslationOptions",
    "TranslationScores",
    "beam_search",
    "greedy_search",
    "sample",
    "sentence_batches",
    "translate",
]
