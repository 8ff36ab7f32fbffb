"""Models: encoder-decoder Transformers and recurrent models, a language model, a classifier.

How the files work together:

- `factory` builds a model from a `ModelConfig`; no other file reads settings.
- `protocols` holds the contracts: `Seq2SeqModel`, the base class of `Transformer` and
  `RecurrentModel`; `DecoderModel` and `DecoderState`, all that a search needs; and
  `AttentionWeights`, which `forward_with_weights` returns.
- `transformer` combines the stacks of `encoder_decoder`, which are made of the blocks in `layers`;
  `recurrent` holds the GRU model of Bahdanau and Luong.
- `decoder_state` holds the values that decoding passes around (`EncodedSource`, `TransformerState`,
  `RecurrentState`); `bucketing` encodes items of similar length together.
- `convert` copies torch's own Transformer.

Training decodes whole targets (`model(source, lengths, target)`); a search decodes step by step::

    encoded = model.encode(source, lengths)
    state = model.init_state(encoded)
    states, state = model.step(tokens, state)      # tokens: (batch, beam)
    log_probs = model.logits(states).log_softmax(-1)
"""

from regard.models.convert import from_torch as from_torch
from regard.models.decoder_state import EncodedSource as EncodedSource
from regard.models.decoder_state import RecurrentState as RecurrentState
from regard.models.decoder_state import TransformerState as TransformerState
from regard.models.encoder_decoder import Decoder as Decoder
from regard.models.encoder_decoder import Encoder as Encoder
from regard.models.factory import build as build
from regard.models.factory import build_classifier as build_classifier
from regard.models.factory import build_language_model as build_language_model
from regard.models.factory import count_parameters as count_parameters
from regard.models.factory import min_parameters as min_parameters
from regard.models.factory import summary as summary
from regard.models.layers import Embedding as Embedding
from regard.models.layers import FeedForward as FeedForward
from regard.models.layers import Residual as Residual
from regard.models.layers import TransformerLayer as TransformerLayer
from regard.models.protocols import AttentionWeights as AttentionWeights
from regard.models.protocols import DecoderModel as DecoderModel
from regard.models.protocols import DecoderState as DecoderState
from regard.models.protocols import Seq2SeqModel as Seq2SeqModel
from regard.models.recurrent import RecurrentModel as RecurrentModel
from regard.models.transformer import Classifier as Classifier
from regard.models.transformer import LanguageModel as LanguageModel
from regard.models.transformer import Transformer as Transformer

__all__ = [
    "AttentionWeights",
    "Classifier",
    "Decoder",
    "DecoderModel",
    "DecoderState",
    "Embedding",
    "EncodedSource",
    "Encoder",
    "FeedForward",
    "LanguageModel",
    "RecurrentModel",
    "RecurrentState",
    "Residual",
    "Seq2SeqModel",
    "Transformer",
    "TransformerLayer",
    "TransformerState",
    "build",
    "build_classifier",
    "build_language_model",
    "count_parameters",
    "from_torch",
    "min_parameters",
    "summary",
]
