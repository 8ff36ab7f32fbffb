"""Rows that were assembled: joined, padded, repeated, written one by one, or made of features."""

from warnings import catch_warnings

import torch
from einops import pack, rearrange, repeat
from torch import Tensor, nn

from capture.patterns.base import Attention, Bare, FusedAttention, Sizes, pattern, sharp_linear


def two_windows(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, 2 * sizes.queries, sizes.width),)


def image(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, 6, 4, sizes.width),)


def video(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, 4, sizes.queries, sizes.width),)


def one_vector(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.queries, sizes.width), torch.randn(sizes.batch, 10))


def alignment(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(4, sizes.keys, sizes.batch, sizes.width),)


def nodes(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(2 * sizes.queries, sizes.width),)


@pattern("self", inputs=two_windows, probe=None, variants=("batch=heads", "all_equal"))
class PackedWindows(FusedAttention):
    """Local attention of lucidrains: batch and heads packed, which joins a list of one tensor."""

    def forward(self, x):
        q, k, v = (
            pack([rearrange(t, "b n (h d) -> b h n d", h=self.heads)], "* n d")[0]
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        q, k, v = (rearrange(t, "b (w n) d -> b w n d", w=2) for t in (q, k, v))
        attn = (torch.einsum("b w i d, b w j d -> b w i j", q, k) * self.scale).softmax(dim=-1)
        self.note(attn, "(b h) w q k -> b w h q k", h=self.heads)
        out = torch.einsum("b w i j, b w j d -> b w i d", attn, v)
        return self.to_out(rearrange(out, "(b h) w n d -> b (w n) (h d)", h=self.heads))


@pattern("self", probe=None, variants=("batch=heads", "batch_of_1"))
class ExpandedPositions(FusedAttention):
    """Axial positions: embeddings are expanded to the batch, and the text is added to them."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.positions = nn.Parameter(torch.randn(1, sizes.queries, sizes.width))

    def forward(self, x):
        x = self.positions.expand(len(x), -1, -1) + x
        q, k, v = (
            rearrange(t, "b n (h d) -> (b h) n d", h=self.heads)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn, "(b h) q k -> b h q k", h=self.heads)
        return self.to_out(rearrange(attn @ v, "(b h) n d -> b n (h d)", h=self.heads))


@pattern("self", inputs=two_windows, probe=None, variants=("batch=heads", "all_equal"))
class RegistersInWindows(FusedAttention):
    """Windows that each have copies of learned registers before their rows."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.registers = nn.Parameter(torch.randn(2, sizes.width))

    def forward(self, x):
        x = rearrange(x, "b (w n) d -> (b w) n d", w=2)
        registers = repeat(self.registers, "n d -> b w n d", b=len(x) // 2, w=2)
        x = torch.cat([registers.flatten(0, 1), x], dim=1)
        q, k, v = (
            rearrange(t, "b n (h d) -> b h n d", h=self.heads)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        attn = (q @ k.transpose(-1, -2) * self.scale).softmax(dim=-1)
        self.note(attn, "(b w) h q k -> b w h q k", w=2)
        return self.to_out(rearrange(attn @ v, "b h n d -> b n (h d)"))


@pattern("self", inputs=image, probe=None, variants=("batch=heads", "batch_of_1", "all_equal"))
class ClassTokenPerPatch(FusedAttention):
    """Patches of an image with a class token each, before its pixels."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.token = nn.Parameter(torch.randn(sizes.width))

    def forward(self, x):
        x = rearrange(x, "b (i x) (j y) d -> (b i j) (x y) d", i=2, j=2)
        x = torch.cat([self.token.expand(len(x), 1, -1), x], dim=1)
        q, k, v = (
            rearrange(t, "b n (h d) -> b h n d", h=self.heads)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        attn = (q @ k.transpose(-1, -2) * self.scale).softmax(dim=-1)
        self.note(attn, "(b w) h q k -> b w h q k", w=4)
        return self.to_out(rearrange(attn @ v, "b h n d -> b n (h d)"))


@pattern("self", inputs=one_vector, probe=None, variants=("batch=heads", "all_equal"))
class TokensOfFeatures(FusedAttention):
    """Tokens that are parts of one wide projection, before those of the text."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.to_tokens = nn.Linear(10, 4 * sizes.width)

    def forward(self, x, vector):
        x = torch.cat([self.to_tokens(vector).unflatten(-1, (4, -1)), x], dim=1)
        q, k, v = (
            rearrange(t, "b n (h d) -> b h n d", h=self.heads)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        attn = (q @ k.transpose(-1, -2) * self.scale).softmax(dim=-1)
        self.note(attn)
        return self.to_out(rearrange(attn @ v, "b h n d -> b n (h d)"))


@pattern("cross", inputs=one_vector, probe=None, variants=("batch=heads", "all_equal"))
class KeysOfFeatures(Attention):
    """An image adapter: keys are the parts of one wide projection of an image."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.to_tokens = nn.Linear(10, sizes.keys * sizes.width)

    def forward(self, x, vector):
        tokens = self.to_tokens(vector).view(len(vector), -1, x.shape[-1])
        q, k, v = (
            rearrange(t, "b n (h d) -> b h n d", h=self.heads)
            for t in (self.to_q(x), self.to_k(tokens), self.to_v(tokens))
        )
        attn = (q @ k.transpose(-1, -2) * self.scale).softmax(dim=-1)
        self.note(attn)
        return self.to_out(rearrange(attn @ v, "b h n d -> b n (h d)"))


@pattern("self", inputs=video, probe=None)
class ClassTokensOfFrames(FusedAttention):
    """TimeSformer: class tokens of the first frames come first, and pixels attend over frames."""

    def forward(self, x):
        batch, frames, pixels, _ = x.shape
        rows = x.flatten(0, 1)
        tokens = rearrange(rows, "(b f) n d -> b (n f) d", b=batch)
        tokens = torch.cat([rows[:batch, :1], tokens], dim=1)
        q, k, v = (
            rearrange(t, "b (n f) (h d) -> (b n) h f d", f=frames, h=self.heads)
            for t in self.to_qkv(tokens[:, 1:]).chunk(3, dim=-1)
        )
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn, "(b w) h q k -> b w h q k", w=pixels)
        return self.to_out(rearrange(attn @ v, "(b n) h f d -> b (n f) (h d)", n=pixels))


class AlignmentAttention(Bare):
    """Projections of an alignment (row, column, batch, width)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        width = sizes.width
        self.to_rows, self.to_columns = sharp_linear(width, 3 * width), sharp_linear(width, width)

    def tied_rows(self, x):
        q, k, v = self.to_rows(x).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        attn = torch.einsum("r i n h d, r j n h d -> h n i j", q, k).mul(0.1).softmax(dim=-1)
        self.note(attn, "h b q k -> b h q k")
        return x + torch.einsum("h n i j, r j n h d -> r i n h d", attn, v).flatten(-2)


@pattern("self", inputs=alignment, probe=None, variants={"rows=batch": Sizes(batch=4)})
class TiedRows(AlignmentAttention):
    """Attention over the columns of an alignment: scores are summed over its rows, too."""

    def forward(self, x):
        return self.tied_rows(x)


@pattern("self", "self", inputs=alignment, probe=None, variants={"rows=batch": Sizes(batch=4)})
class TiedRowsThenColumns(AlignmentAttention):
    """The MSA Transformer: rows share weights over columns, then columns attend over rows."""

    def forward(self, x):
        x = self.tied_rows(x)
        q = self.to_columns(x).unflatten(-1, (self.heads, -1))
        attn = torch.einsum("i c n h d, j c n h d -> h c n i j", q, q).softmax(dim=-1)
        self.note(attn, "h w b q k -> b w h q k")
        return torch.einsum("h c n i j, j c n h d -> i c n h d", attn, q).flatten(-2)


@pattern("self", inputs=nodes, probe=None)
class DenseBatchOfGraphs(FusedAttention):
    """PyTorch Geometric: the nodes of all graphs are written to rows of one padded tensor."""

    def forward(self, x):
        index = torch.arange(len(x))
        dense = torch.as_tensor(0.0).repeat(len(x) + 1, x.shape[1])
        dense[index] = x
        dense = dense[:-1].view(2, -1, x.shape[1])
        q, k, v = (
            rearrange(t, "b n (h d) -> b h n d", h=self.heads)
            for t in self.to_qkv(dense).chunk(3, dim=-1)
        )
        attn = (q @ k.transpose(-1, -2) * self.scale).softmax(dim=-1)
        self.note(attn)
        return self.to_out(rearrange(attn @ v, "b h n d -> b n (h d)"))


def soft_clamp(scores: Tensor, limit: float) -> Tensor:
    return (scores / limit).tanh() * limit


with catch_warnings(action="ignore", category=DeprecationWarning):
    scripted_soft_clamp = torch.jit.script(soft_clamp)


@pattern("self", variants=True)
class ScriptedScores(FusedAttention):
    """Scores that a scripted function changes, which no mode sees."""

    def forward(self, x):
        q, k, v = (
            rearrange(t, "b n (h d) -> b h n d", h=self.heads)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        attn = scripted_soft_clamp(q @ k.transpose(-1, -2) * self.scale, 5.0).softmax(dim=-1)
        self.note(attn)
        return self.to_out(rearrange(attn @ v, "b h n d -> b n (h d)"))
