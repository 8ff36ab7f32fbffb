"""Translation with torch: every model, score and option; the reference for other engines."""

import torch

from regard.data import Tokenizers, pad_sequences
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.prefix import TextPrefixes
from regard.decoding.sampling import sample
from regard.decoding.search import ShouldStop, beam_search
from regard.decoding.sentences import SentenceBatch, Translation, TranslationOptions
from regard.models import Seq2SeqModel


class TorchEngine:
    """Searches with the model itself.

    Args:
        model: a translation model in evaluation mode.
        tokenizers: of source and target.

    Example:
        >>> TorchEngine(run.model, run.tokenizers).name
        'torch'
    """

    name = "torch"

    def __init__(self, model: Seq2SeqModel, tokenizers: Tokenizers) -> None:
        self.model, self.tokenizers = model, tokenizers

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def translate_batch(
        self,
        batch: SentenceBatch,
        options: TranslationOptions,
        should_stop: ShouldStop | None = None,
    ) -> list[list[Translation]]:
        """Return the translations of each sentence of a batch, best first."""
        decode = self.tokenizers.target.decode
        return [
            [Translation(decode(hypothesis.tokens), *hypothesis) for hypothesis in hypotheses]
            for hypotheses in self._search(batch, options, should_stop)
        ]

    @torch.inference_mode()
    def _search(
        self, batch: SentenceBatch, options: TranslationOptions, should_stop: ShouldStop | None
    ) -> list[list[Hypothesis]]:
        """Search or sample the translations of one batch."""
        model, target = self.model, self.tokenizers.target
        device = model.output_weight.device
        source, lengths = (tensor.to(device) for tensor in pad_sequences(batch.sources))
        has_prefix = any(batch.prefixes)
        prefixes = TextPrefixes(target, batch.prefixes, device) if has_prefix else None
        prefix_length = 0 if prefixes is None else prefixes.max_length
        limits = options.length_limits(int(lengths.max()), model.max_length, prefix_length)
        if options.sampling is not None:
            samples = sample(
                model,
                source,
                lengths,
                sampling=options.sampling,
                limits=limits,
                allowed_tokens=prefixes,
                numbers=batch.numbers,
                should_stop=should_stop,
            )
            return [[hypothesis] for hypothesis in samples]
        return beam_search(
            model,
            source,
            lengths,
            beam_size=options.search.beam_size,
            n_best=options.n_best,
            length_penalty=options.search.length_penalty,
            limits=limits,
            allowed_tokens=prefixes,
            should_stop=should_stop,
        )
