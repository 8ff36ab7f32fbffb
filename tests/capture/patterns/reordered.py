"""Rows that are rolled, sorted or flipped on the way to the product: the record has their order."""

import torch
import torch.nn.functional as F

from capture.patterns.base import Attention, Sizes, one_long_text, pattern, sharp_linear


class Reordered(Attention):
    """Base: heads are split; queries, keys and values are brought to another order."""

    def split(self, x, layer):
        return layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)


@pattern("self", variants=True)
class KeysRolledByHead(Reordered):
    """Keys and values of each head are rolled by as many positions as its number."""

    def forward(self, x):
        q, k, v = (self.split(x, layer) for layer in (self.to_q, self.to_k, self.to_v))
        k, v = (torch.stack([t[:, n].roll(n, 1) for n in range(self.heads)], 1) for t in (k, v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        true = torch.stack([attn[:, n].roll(-n, -1) for n in range(self.heads)], 1)
        self.note(true)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", variants=("batch=heads", "batch_of_1", "heads_of_1", "all_equal"))
class KeysRolledTogether(Reordered):
    """Keys and values of all heads are rolled, queries are not."""

    def forward(self, x):
        q, k, v = (self.split(x, layer) for layer in (self.to_q, self.to_k, self.to_v))
        attn = (q @ k.roll(2, 2).mT * self.scale).softmax(-1)
        self.note(attn.roll(-2, -1))
        return self.to_out((attn @ v.roll(2, 2)).transpose(1, 2).flatten(2))


@pattern("self")
class TextRolledBeforeProjection(Reordered):
    """The text is rolled before keys and values are projected."""

    def forward(self, x):
        rolled = torch.roll(x, shifts=1, dims=1)
        q, k, v = self.split(x, self.to_q), self.split(rolled, self.to_k), self.to_v(x)
        v = torch.roll(v, 1, 1).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn.roll(-1, -1))
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", variants=("batch=heads", "heads_of_1", "all_equal"))
class KeysInARing(Reordered):
    """A shift by one that is written with `cat`."""

    def forward(self, x):
        q, k, v = (self.split(x, layer) for layer in (self.to_q, self.to_k, self.to_v))
        k, v = (torch.cat([t[:, :, -1:], t[:, :, :-1]], dim=2) for t in (k, v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn.roll(-1, -1))
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", variants=("batch=heads", "batch_of_1", "all_equal"))
class SortedByHead(Reordered):
    """Each head of each item sorts queries, keys and values, and puts its context back."""

    def forward(self, x):
        q, k, v = (self.split(x, layer) for layer in (self.to_q, self.to_k, self.to_v))
        order = q.sum(-1).argsort(dim=-1)
        q, k, v = (t.gather(2, order[..., None].expand_as(t)) for t in (q, k, v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        back = order.argsort(-1)
        rows = attn.gather(2, back[..., None].expand_as(attn))
        self.note(rows.gather(3, back[:, :, None].expand_as(attn)))
        out = torch.zeros_like(v).scatter(2, order[..., None].expand_as(v), attn @ v)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("self", sizes=Sizes(heads=4))
class HalfOfTheHeadsBackwards(Reordered):
    """Half of the heads read the text backwards, with a causal mask for all."""

    def forward(self, x):
        q, k, v = (self.split(x, layer) for layer in (self.to_q, self.to_k, self.to_v))
        q, k, v = (torch.cat([t[:, :2], t[:, 2:].flip(2)], dim=1) for t in (q, k, v))
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        attn = (q @ k.mT * self.scale).masked_fill(future, -torch.inf).softmax(-1)
        self.note(torch.cat([attn[:, :2], attn[:, 2:].flip(2, 3)], dim=1))
        out = attn @ v
        out = torch.cat([out[:, :2], out[:, 2:].flip(2)], dim=1)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("causal", variants=("batch=heads", "all_equal"), probe=None)
class TextReadBackwards(Reordered):
    """A backward language model: rows are in the order in which all layers read them."""

    def forward(self, x):
        x = x.flip(1)
        q, k, v = (self.split(x, layer) for layer in (self.to_q, self.to_k, self.to_v))
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        attn = (q @ k.mT * self.scale).masked_fill(future, -torch.inf).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2)).flip(1)


@pattern("cross", variants=("batch=heads", "batch_of_1", "heads_of_1"))
class MemoryBackwards(Reordered):
    """The rows of another text are read backwards."""

    def forward(self, x, memory):
        q = self.split(x, self.to_q)
        k, v = (self.split(memory, layer).flip(2) for layer in (self.to_k, self.to_v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn.flip(-1))
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", inputs=one_long_text, probe=None, variants=("batch=heads", "heads_of_1"))
class VisiblePatches(Reordered):
    """MAE's encoder: some rows of each item were chosen at random; they are the text."""

    def forward(self, x):
        order = torch.rand(x.shape[:2]).argsort(dim=1)[:, :4]
        x = x.gather(1, order[..., None].expand(-1, -1, x.shape[-1]))
        q, k, v = (self.split(x, layer) for layer in (self.to_q, self.to_k, self.to_v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", variants=("batch=heads", "batch_of_1", "heads_of_1", "all_equal"))
class RowsByIndex(Reordered):
    """A permutation by an index, as of a space-filling curve, of keys and values alone."""

    def forward(self, x):
        order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(3))
        q, k, v = (self.split(x, layer) for layer in (self.to_q, self.to_k, self.to_v))
        attn = (q @ k[:, :, order].mT * self.scale).softmax(-1)
        self.note(attn[..., order.argsort()])
        out = attn @ v.index_select(2, order)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("self", variants=True)
class FusedWithRolledKeys(Reordered):
    """The fused kernel, with keys and values rolled by the number of their head."""

    def forward(self, x):
        q, k, v = (self.split(x, layer) for layer in (self.to_q, self.to_k, self.to_v))
        self.note_dot_product(q, k)
        k, v = (torch.stack([t[:, n].roll(n, 1) for n in range(self.heads)], 1) for t in (k, v))
        return self.to_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


@pattern("self", sizes=Sizes(heads=4))
class FusedAndGrouped(Attention):
    """Grouped keys that are rolled, in the fused kernel; a mask hides one of them."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.to_k, self.to_v = (sharp_linear(sizes.width, sizes.width // 2) for _ in range(2))

    def forward(self, x):
        q = self.to_q(x).unflatten(-1, (4, -1)).transpose(1, 2)
        k, v = (t(x).unflatten(-1, (2, -1)).transpose(1, 2) for t in (self.to_k, self.to_v))
        mask = torch.arange(x.shape[1]).expand(x.shape[1], -1) != 1
        self.note_dot_product(q, k.repeat_interleave(2, 1), mask=mask.roll(-1, 1))
        k, v = k.roll(1, 2), v.roll(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("self", sizes=Sizes(heads=2), variants=("batch=heads",))
class FusedInTwoDirections(Reordered):
    """The fused kernel with a causal mask, the second head of a text that is flipped."""

    def forward(self, x):
        q, k, v = (self.split(x, layer) for layer in (self.to_q, self.to_k, self.to_v))
        first, second = torch.ones(2, x.shape[1], x.shape[1], dtype=torch.bool).tril().unbind()
        others = [second.flip(0, 1)] * (self.heads - 1)
        self.note_dot_product(q, k, mask=torch.stack([first, *others]))
        q, k, v = (torch.cat([t[:, :1], t[:, 1:].flip(2)], dim=1) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out = torch.cat([out[:, :1], out[:, 1:].flip(2)], dim=1)
        return self.to_out(out.transpose(1, 2).flatten(2))
