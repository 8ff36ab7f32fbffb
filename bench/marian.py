"""An untrained Marian model of Hugging Face, to compare decoding speed with."""

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from regard.config import ModelConfig
from regard.data import BOS, EOS, PAD


def build_marian(sizes: ModelConfig, vocab_size: int) -> MarianMTModel:
    """Build a model of the sizes of one of regard's."""
    config = MarianConfig(
        vocab_size=vocab_size,
        d_model=sizes.width,
        encoder_layers=sizes.layers,
        decoder_layers=sizes.layers,
        encoder_attention_heads=sizes.heads,
        decoder_attention_heads=sizes.heads,
        encoder_ffn_dim=sizes.ffn_width,
        decoder_ffn_dim=sizes.ffn_width,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config).eval()


@torch.inference_mode()
def decode_marian(model: MarianMTModel, sources: Tensor, beam_size: int, length: int) -> None:
    """Translate padded sources into exactly `length` tokens each, EOS included."""
    model.generate(
        sources,
        attention_mask=(sources != PAD).long(),
        num_beams=beam_size,
        do_sample=False,
        min_new_tokens=length,
        max_new_tokens=length,
    )
