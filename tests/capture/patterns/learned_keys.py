"""Self-attention with learned keys besides those of the text, and what resembles it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capture.patterns.base import Attention, Sizes, one_text, pattern, two_texts


class WithLearnedKeys(Attention):
    """Base of patterns with two learned keys, and values, per head."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.memory_k = nn.Parameter(torch.randn(sizes.heads, 2, sizes.head_width))
        self.memory_v = nn.Parameter(torch.randn(sizes.heads, 2, sizes.head_width))

    def projected(self, x, context=None):
        layers = zip((self.to_q, self.to_k, self.to_v), (x, context, context), strict=True)
        return [
            layer(x if rows is None else rows).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, rows in layers
        ]

    def attend(self, q, k, v):
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", variants=True, probe=None, is_traced=True)
class LearnedKeysFirst(WithLearnedKeys):
    """x-transformers' memory keys: expanded parameters before the keys of the text."""

    def forward(self, x):
        q, k, v = self.projected(x)
        memory = (t.expand(len(x), -1, -1, -1) for t in (self.memory_k, self.memory_v))
        k, v = (torch.cat([own, t], dim=2) for own, t in zip(memory, (k, v), strict=True))
        return self.attend(q, k, v)


@pattern("self", variants=True, probe=None, is_traced=True)
class LearnedKeysLast(WithLearnedKeys):
    """Memory-augmented attention: repeated parameters after the keys of the text."""

    def forward(self, x):
        q, k, v = self.projected(x)
        memory = (t[None].repeat(len(x), 1, 1, 1) for t in (self.memory_k, self.memory_v))
        k, v = (torch.cat([t, own], dim=2) for own, t in zip(memory, (k, v), strict=True))
        return self.attend(q, k, v)


@pattern("self", variants=True, probe=None, is_traced=True)
class LearnedKeysFused(WithLearnedKeys):
    """DALL-E 2's null key and learned ones around those of the text, for the fused kernel."""

    def forward(self, x):
        q, k, v = self.projected(x)
        memory = (t.expand(len(x), -1, -1, -1) for t in (self.memory_k, self.memory_v))
        k, v = (
            torch.cat([own[:, :, :1], t, own[:, :, 1:]], dim=2)
            for own, t in zip(memory, (k, v), strict=True)
        )
        self.note_dot_product(q, k)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("self", variants=True, probe=None, is_traced=True)
class KeyOfZerosFirst(WithLearnedKeys):
    """A key and a value of zeros before those of the text, to attend to nothing."""

    def forward(self, x):
        q, k, v = self.projected(x)
        return self.attend(q, F.pad(k, (0, 0, 1, 0)), F.pad(v, (0, 0, 1, 0)))


@pattern("cross", inputs=one_text, variants=True, probe=None)
class LatentsBesideText(WithLearnedKeys):
    """Perceiver's resampler: learned queries, as many as the text has rows, and keys of both."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.latents = nn.Parameter(torch.randn(sizes.queries, sizes.width))
        self.norm = nn.LayerNorm(sizes.width)

    def forward(self, x):
        latents = self.norm(self.latents.expand(len(x), -1, -1))
        return self.attend(*self.projected(latents, torch.cat([x, latents], dim=1)))


@pattern("cross", inputs=two_texts, variants=True, probe=None)
class TextAfterAnotherText(WithLearnedKeys):
    """Keys of another text before those of the queries' own."""

    def forward(self, x, y: Tensor):
        return self.attend(*self.projected(x, torch.cat([y, x], dim=1)))
