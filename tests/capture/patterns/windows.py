"""Attention within windows: records (batch, window, head, query, key)."""

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from capture.patterns.base import (
    Attention,
    Bare,
    FusedAttention,
    Sizes,
    pattern,
    sharp_linear,
)

LONG = Sizes(queries=20)  # four windows of five tokens
COINCIDENT_BLOCKS = {
    "batch=windows": Sizes(batch=4, queries=20),
    "windows=heads": Sizes(queries=15),
    "windows=queries": Sizes(queries=25),
    "batch=windows=heads": Sizes(batch=3, queries=15),
    "batch_of_1": Sizes(batch=1, queries=20),
    "heads_of_1": Sizes(heads=1, queries=20),
}
COINCIDENT_IMAGES = {
    "batch=windows": Sizes(batch=6),
    "batch=heads": Sizes(batch=3),
    "windows=heads": Sizes(heads=6),
    "heads=queries": Sizes(heads=4),
    "batch_of_1": Sizes(batch=1),
}


def image(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, 4, 6, sizes.width),)


def window_partition(x, window):
    B, H, W, C = x.shape
    x = x.view(B, H // window, window, W // window, window, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window, window, C)


def window_reverse(windows, window, H, W):
    B = int(windows.shape[0] / (H * W / window / window))
    x = windows.view(B, H // window, W // window, window, window, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)


class WindowAttention(FusedAttention):
    """Swin's attention, to which windows are items of a batch."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.relative_position_bias_table = nn.Parameter(torch.randn(9, sizes.heads))

    def forward(self, x, mask=None):
        B_, N, C = x.shape
        qkv = self.to_qkv(x).reshape(B_, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q * self.scale) @ k.transpose(-2, -1)
        index = torch.arange(16).view(4, 4) % 9
        bias = self.relative_position_bias_table[index.view(-1)].view(N, N, -1)
        attn = attn + bias.permute(2, 0, 1).contiguous().unsqueeze(0)
        if mask is not None:
            nW = mask.shape[0]
            attn = attn.view(B_ // nW, nW, self.heads, N, N) + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, self.heads, N, N)
        attn = attn.softmax(dim=-1)
        self.note(attn, "(b w) h q k -> b w h q k", b=self.sizes.batch)
        return self.to_out((attn @ v).transpose(1, 2).reshape(B_, N, C))


@pattern("self", inputs=image, names=("attn",), variants=COINCIDENT_IMAGES)
class SwinBlock(nn.Module):
    """Swin: window_partition by view, permute and view."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attn = WindowAttention(sizes)

    def forward(self, x):
        _, H, W, C = x.shape
        windows = window_partition(x, 2).view(-1, 4, C)
        windows = self.attn(windows).view(-1, 2, 2, C)
        return window_reverse(windows, 2, H, W)


@pattern("self", inputs=image, names=("attn",), variants=COINCIDENT_IMAGES)
class SwinShiftedBlock(nn.Module):
    """Swin with a shift: roll, a mask per window, and roll back."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attn = WindowAttention(sizes)
        regions = torch.zeros(1, 4, 6, 1)
        for n, (rows, columns) in enumerate(
            (r, c) for r in (slice(0, 3), slice(3, 4)) for c in (slice(0, 5), slice(5, 6))
        ):
            regions[:, rows, columns] = n
        windows = window_partition(regions, 2).view(-1, 4)
        mask = windows.unsqueeze(1) - windows.unsqueeze(2)
        self.register_buffer("mask", mask.masked_fill(mask != 0, -100.0))

    def forward(self, x):
        _, H, W, C = x.shape
        shifted = torch.roll(x, shifts=(-1, -1), dims=(1, 2))
        windows = self.attn(window_partition(shifted, 2).view(-1, 4, C), mask=self.mask)
        shifted = window_reverse(windows.view(-1, 2, 2, C), 2, H, W)
        return torch.roll(shifted, shifts=(1, 1), dims=(1, 2))


@pattern("self", inputs=image, probe=None, variants=COINCIDENT_IMAGES)
class EinopsWindows(FusedAttention):
    """MaxViT in lucidrains' style: windows by rearrange, folded into the batch."""

    def forward(self, x):
        b, height, width, _ = x.shape
        x = rearrange(x, "b (x w1) (y w2) d -> (b x y) (w1 w2) d", w1=2, w2=2)
        q, k, v = (
            rearrange(t, "b n (h d) -> b h n d", h=self.heads)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        sim = torch.einsum("b h i d, b h j d -> b h i j", q * self.scale, k)
        attn = sim.softmax(dim=-1)
        self.note(attn, "(b w) h q k -> b w h q k", b=b)
        out = rearrange(
            torch.einsum("b h i j, b h j d -> b h i d", attn, v), "b h n d -> b n (h d)"
        )
        return rearrange(
            self.to_out(out),
            "(b x y) (w1 w2) d -> b (x w1) (y w2) d",
            x=height // 2,
            y=width // 2,
            w1=2,
        )


def frames(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch * sizes.queries, 2, 3, sizes.width),)


@pattern("self", inputs=frames, probe=None, variants=("batch=heads", "heads=queries"))
class FramesOfVideos(FusedAttention):
    """Video diffusion: frames are items of the batch, and each pixel attends over the frames."""

    def forward(self, x):
        _, height, width, _ = x.shape
        x = rearrange(x, "(b f) y x d -> (b y x) f d", f=self.sizes.queries)
        q, k, v = (
            rearrange(t, "n f (h d) -> n h f d", h=self.heads)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        self.note_dot_product(q, k, "(b w) h q k -> b w h q k", w=height * width)
        out = rearrange(F.scaled_dot_product_attention(q, k, v), "n h f d -> n f (h d)")
        return rearrange(self.to_out(out), "(b y x) f d -> (b f) y x d", y=height, x=width)


@pattern("self", inputs=image, probe=None)
class MaxvitGrid(FusedAttention):
    """MaxViT's grid attention: every second pixel belongs together."""

    def forward(self, x):
        b, height, width, _ = x.shape
        x = rearrange(x, "b (w1 x) (w2 y) d -> (b x y) (w1 w2) d", w1=2, w2=2)
        q, k, v = (
            rearrange(t, "b n (h d) -> b h n d", h=self.heads)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        attn = (q * self.scale @ k.mT).softmax(dim=-1)
        self.note(attn, "(b w) h q k -> b w h q k", b=b)
        out = rearrange(attn @ v, "b h n d -> b n (h d)")
        return rearrange(
            self.to_out(out),
            "(b x y) (w1 w2) d -> b (w1 x) (w2 y) d",
            x=height // 2,
            y=width // 2,
            w1=2,
        )


@pattern("self", sizes=LONG, probe=None, variants=COINCIDENT_BLOCKS)
class LocalBlocksByView(Attention):
    """Blocks of a text by view, folded into the batch."""

    def forward(self, x):
        b, n, c = x.shape
        blocks = x.view(b * (n // 5), 5, c)
        q, k, v = (
            layer(blocks).view(-1, 5, self.heads, self.head_width).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = torch.softmax(q @ k.transpose(2, 3) * self.scale, dim=-1)
        self.note(attn, "(b w) h q k -> b w h q k", b=b)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, n, c))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class LocalBlocksAfterProjection(Attention):
    """Blocks of projected queries with five axes: (batch, head, block, query, width)."""

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b (w n) (h d) -> b h w n d", n=5, h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = torch.einsum("bhwid,bhwjd->bhwij", q, k).mul(self.scale).softmax(-1)
        self.note(attn, "b h w q k -> b w h q k")
        out = torch.einsum("bhwij,bhwjd->bhwid", attn, v)
        return self.to_out(rearrange(out, "b h w n d -> b (w n) (h d)"))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class LocalBlocksBeforeHeads(Attention):
    """Blocks by einops before the heads: (batch, block, head, query, key)."""

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b (w n) (h d) -> b w h n d", n=5, h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn)
        return self.to_out(rearrange(attn @ v, "b w h n d -> b (w n) (h d)"))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class LookAround(Attention):
    """lucidrains' local-attention: each block also sees its neighbours; heads in the batch."""

    @staticmethod
    def look_around(x):
        padded = F.pad(x, (0, 0, 0, 0, 1, 1), value=0.0)
        return torch.cat([padded[:, i : i + x.shape[1]] for i in range(3)], dim=2)

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b (w n) (h d) -> (b h) w n d", n=5, h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        k, v = self.look_around(k), self.look_around(v)
        sim = torch.einsum("b w i d, b w j d -> b w i j", q, k) * self.scale
        attn = sim.softmax(dim=-1)
        self.note(attn, "(b h) w q k -> b w h q k", h=self.heads)
        out = torch.einsum("b w i j, b w j d -> b w i d", attn, v)
        return self.to_out(rearrange(out, "(b h) w n d -> b (w n) (h d)", h=self.heads))


@pattern("self", sizes=LONG, probe=None, is_traced=True)
class UnfoldedBlocks(Attention):
    """Longformer-like: overlapping keys by unfold, one window for each block of queries."""

    def forward(self, x):
        q = rearrange(self.to_q(x), "b (w n) (h d) -> b h w n d", n=5, h=self.heads)
        k, v = (
            F.pad(layer(x), (0, 0, 2, 2)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_k, self.to_v)
        )
        k, v = (t.unfold(2, 9, 5) for t in (k, v))
        attn = torch.einsum("bhwnd,bhwdm->bhwnm", q, k).mul(self.scale).softmax(-1)
        self.note(attn, "b h w q k -> b w h q k")
        out = torch.einsum("bhwnm,bhwdm->bhwnd", attn, v)
        return self.to_out(rearrange(out, "b h w n d -> b (w n) (h d)"))


@pattern("self", probe=None, is_traced=True)
class NeighbourhoodByUnfold(Attention):
    """Stand-alone self-attention: each query has three keys of its own, by unfold."""

    def forward(self, x):
        q = self.to_q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (
            F.pad(layer(x), (0, 0, 1, 1)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_k, self.to_v)
        )
        k, v = (t.unfold(2, 3, 1) for t in (k, v))
        attn = torch.einsum("bhnd,bhndm->bhnm", q, k).mul(self.scale).softmax(-1)
        self.note(attn.unsqueeze(3), "b h w q k -> b w h q k")
        out = torch.einsum("bhnm,bhndm->bhnd", attn, v)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class BlocksInARing(Attention):
    """Reformer's local attention: the block before is appended, that of the first is the last."""

    @staticmethod
    def with_block_before(x):
        return torch.cat([torch.cat([x[:, :, -1:], x[:, :, :-1]], dim=2), x], dim=3)

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b (w n) (h d) -> b h w n d", n=5, h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        k, v = self.with_block_before(k), self.with_block_before(v)
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn, "b h w q k -> b w h q k")
        return self.to_out(rearrange(attn @ v, "b h w n d -> b (w n) (h d)"))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class SortedBlocks(Attention):
    """Reformer's LSH attention: each head sorts the text by itself, and attends within blocks."""

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            rearrange(layer(x), "b n (h d) -> b h n d", h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        order = q.sum(-1).argsort(dim=-1)[..., None].expand_as(q)
        q, k, v = (t.gather(2, order).reshape(b, self.heads, n // 5, 5, -1) for t in (q, k, v))
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn, "b h w q k -> b w h q k")
        out = torch.zeros_like(order, dtype=q.dtype).scatter(2, order, (attn @ v).flatten(2, 3))
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class ChosenBlocks(Attention):
    """BigBird's random blocks: each block of queries also attends to one that an index picks."""

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b (w n) (h d) -> b h w n d", n=5, h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        chosen = torch.arange(2, 2 * q.shape[2] + 2, 2) % q.shape[2]
        k, v = (torch.cat([t, t.index_select(2, chosen)], dim=3) for t in (k, v))
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn, "b h w q k -> b w h q k")
        return self.to_out(rearrange(attn @ v, "b h w n d -> b (w n) (h d)"))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class DilatedBlocks(Attention):
    """Dilated attention: every fourth position of a text belongs together."""

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b (n w) (h d) -> b h w n d", n=5, h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn, "b h w q k -> b w h q k")
        return self.to_out(rearrange(attn @ v, "b h w n d -> b (n w) (h d)"))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class HeadsShiftedByThemselves(Attention):
    """Each head rolls the text by a shift of its own; their blocks are stacked."""

    def shifted(self, rows, head):
        return rows[:, :, head].roll(head + 1, 1).unflatten(1, (-1, 5))

    def forward(self, x):
        rows = (
            layer(x).unflatten(-1, (self.heads, -1)) for layer in (self.to_q, self.to_k, self.to_v)
        )
        q, k, v = (
            torch.stack([self.shifted(t, head) for head in range(self.heads)], dim=1) for t in rows
        )
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn, "b h w q k -> b w h q k")
        out = (attn @ v).flatten(2, 3).unbind(1)
        out = torch.stack([t.roll(-head - 1, 1) for head, t in enumerate(out)], dim=2)
        return self.to_out(out.flatten(2))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class NeighboursByDilation(Attention):
    """Dilated neighbourhoods: rolled keys and values are stacked, each head by its dilation."""

    def neighbours(self, rows):
        rolled = [
            torch.stack([rows[:, :, head].roll(n * (head + 1), 1) for n in (-1, 0, 1)], dim=2)
            for head in range(self.heads)
        ]
        return torch.stack(rolled, dim=1)

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)) for layer in (self.to_q, self.to_k, self.to_v)
        )
        k, v = self.neighbours(k), self.neighbours(v)
        attn = torch.einsum("bnhd,bhnjd->bhnj", q, k).mul(self.scale).softmax(dim=-1)
        self.note(attn.unsqueeze(3), "b h w q k -> b w h q k")
        out = torch.einsum("bhnj,bhnjd->bnhd", attn, v)
        return self.to_out(out.flatten(2))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class SkewedDiagonals(Attention):
    """Longformer's sliding window: diagonals of blocks become columns, and diagonals again."""

    def __init__(self, sizes: Sizes, side: int = 1) -> None:
        super().__init__(sizes)
        self.side, self.block = side, 5  # keys on each side of a query, queries of a block

    def to_columns(self, scores):
        keys = self.block + 2 * self.side
        *leading, _, _ = scores.shape
        *strides, _, _ = scores.stride()
        columns = (self.block, 2 * self.side + 1)
        return scores.as_strided((*leading, *columns), (*strides, keys + 1, 1))

    def to_diagonals(self, columns):
        keys = self.block + 2 * self.side
        padded = F.pad(columns, (0, self.block)).flatten(-2)
        return padded[..., : self.block * keys].unflatten(-1, (self.block, keys))

    def blocks_of(self, rows):
        padded = F.pad(rows, (0, 0, self.side, self.side)).unflatten(-1, (self.heads, -1))
        return padded.transpose(1, 2).unfold(2, self.block + 2 * self.side, self.block)

    def forward(self, x):
        q = rearrange(self.to_q(x), "b (w n) (h d) -> b h w n d", n=self.block, h=self.heads)
        k, v = self.blocks_of(self.to_k(x)), self.blocks_of(self.to_v(x))
        scores = torch.einsum("bhwnd,bhwdm->bhwnm", q, k).mul(self.scale).contiguous()
        columns = self.to_columns(scores)
        column = torch.arange(columns.shape[-1]) - self.side
        neighbour = torch.arange(x.shape[1])[:, None] + column
        is_padding = (neighbour < 0) | (neighbour >= x.shape[1])
        is_padding = is_padding.unflatten(0, (-1, self.block))
        attn = columns.masked_fill(is_padding, -torch.inf).softmax(dim=-1)
        diagonals = self.to_diagonals(F.dropout(attn, 0.0, self.training))
        self.note(diagonals, "b h w q k -> b w h q k")
        out = torch.einsum("bhwnm,bhwdm->bhwnd", diagonals, v)
        return self.to_out(rearrange(out, "b h w n d -> b (w n) (h d)"))


class WithGlobalKeys(Attention):
    """Base of patterns whose queries also attend to the first two rows of a text."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.picked = torch.tensor([0, 1])

    def heads_of(self, rows):
        return rows.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def local_scores(self, q, k):
        scores = self.blocks(q) @ self.blocks(k).mT * self.scale
        scores[:, :, 0, :, :2] = -torch.inf  # these are among the global keys
        return scores

    def blocks(self, t):
        return t.unflatten(2, (-1, 5))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class GlobalKeysOfText(WithGlobalKeys):
    """Longformer's global attention: scores of all rows with some keys, before those of windows."""

    def forward(self, x):
        q, k, v = (self.heads_of(layer(x)) for layer in (self.to_q, self.to_k, self.to_v))
        with_global = q @ k[:, :, self.picked].mT * self.scale
        local = self.local_scores(q, k).flatten(2, 3)
        attn = torch.cat([with_global, local], dim=-1).softmax(dim=-1)
        of_global, of_local = attn[..., :2], attn[..., 2:]
        out = of_global @ v[:, :, self.picked]
        out = out + (self.blocks(of_local) @ self.blocks(v)).flatten(2, 3)
        self.note(attn, "b h (w q) k -> b w h q k", q=5)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class GlobalKeysOfBlocks(WithGlobalKeys):
    """BigBird's global keys: scores of each block with some keys, after its own."""

    def forward(self, x):
        q, k, v = (self.heads_of(layer(x)) for layer in (self.to_q, self.to_k, self.to_v))
        with_global = torch.einsum("bhwqd,bhkd->bhwqk", self.blocks(q), k[:, :, self.picked])
        local = self.local_scores(q, k)
        attn = torch.cat([local, with_global * self.scale], dim=-1).softmax(dim=-1)
        out = attn[..., :5] @ self.blocks(v)
        out = out + torch.einsum("bhwqk,bhkd->bhwqd", attn[..., 5:], v[:, :, self.picked])
        self.note(attn, "b h w q k -> b w h q k")
        return self.to_out(out.flatten(2, 3).transpose(1, 2).flatten(2))


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class SkewedInPlace(SkewedDiagonals):
    """The same, but columns are written into a tensor of zeros, one diagonal at a time."""

    def to_columns(self, scores):
        *leading, _, _ = scores.shape
        columns = scores.new_zeros(*leading, self.block, 2 * self.side + 1)
        for n in range(2 * self.side + 1):
            columns[..., n] = scores.diagonal(n, -2, -1)[..., : self.block]
        return columns


@pattern("self", sizes=LONG, probe=None, is_traced=True, variants=COINCIDENT_BLOCKS)
class SkewedWithGlobalKeys(SkewedInPlace):
    """Longformer: columns and the scores of the first two rows share a softmax."""

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            rearrange(layer(x), "b n (h d) -> b h n d", h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        picked = torch.tensor([0, 1])
        with_global = torch.einsum("bhqd,bhkd->bhqk", q, k[:, :, picked])
        local = q.unflatten(2, (-1, self.block)) @ self.blocks_of(self.to_k(x))
        columns = self.to_columns(local.contiguous()).reshape(b, self.heads, n, -1)
        column = torch.arange(columns.shape[-1]) - self.side
        neighbour = torch.arange(n)[:, None] + column
        columns.masked_fill_((neighbour < 2) | (neighbour >= n), -torch.inf)
        attn = torch.cat([with_global, columns], dim=-1).mul(self.scale).softmax(dim=-1)
        out = attn[..., :2] @ v[:, :, picked]
        diagonals = self.to_diagonals(attn[..., 2:].unflatten(2, (-1, self.block)))
        of_global = attn[..., :2].unflatten(2, (-1, self.block))
        self.note(torch.cat([of_global, diagonals], dim=-1), "b h w q k -> b w h q k")
        local = torch.einsum("bhwnm,bhwdm->bhwnd", diagonals, self.blocks_of(self.to_v(x)))
        out = out + local.flatten(2, 3)
        return self.to_out(out.transpose(1, 2).flatten(2))


def text_with_mask(sizes: Sizes) -> tuple[Tensor, ...]:
    return torch.randn(sizes.batch, sizes.queries, sizes.width), torch.ones(
        sizes.batch, sizes.queries
    )


@pattern("self", sizes=LONG, inputs=text_with_mask, probe=None, variants=COINCIDENT_BLOCKS)
class SummariesOfSegments(Attention):
    """LongT5: blocks also attend to sums of segments, which a matrix adds up."""

    def forward(self, x, mask):
        segments = (mask.cumsum(dim=1).long() - 1) // 10
        matrix = F.one_hot(segments).type_as(x)
        summaries = torch.einsum("...nd,...ng->...gd", x, matrix) / 10
        q, k, v, summary_k, summary_v = (
            layer(rows).unflatten(-1, (self.heads, -1))
            for layer, rows in (
                *((layer, x) for layer in (self.to_q, self.to_k, self.to_v)),
                *((layer, summaries) for layer in (self.to_k, self.to_v)),
            )
        )
        q, k, v = (t.unflatten(1, (-1, 5)) for t in (q, k, v))
        k, v = (
            torch.cat([t, own.unsqueeze(1).repeat(1, t.shape[1], 1, 1, 1)], dim=2)
            for t, own in ((k, summary_k), (v, summary_v))
        )
        attn = torch.einsum("...qhd,...khd->...hqk", q, k).mul(self.scale).softmax(dim=-1)
        self.note(attn)
        out = torch.einsum("...hqk,...khd->...qhd", attn, v)
        return self.to_out(out.flatten(-2).flatten(1, 2))


class AxialLayer(FusedAttention):
    """Attention along one axis, with the other folded into the batch."""

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn, "(b w) h q k -> b w h q k", b=self.sizes.batch)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, n, c))


@pattern("self", "self", inputs=image, names=("row_attn", "column_attn"))
class Axial(nn.Module):
    """Axial attention: along rows, then along columns."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.row_attn, self.column_attn = AxialLayer(sizes), AxialLayer(sizes)

    def forward(self, x):
        b, h, w, c = x.shape
        x = x + self.row_attn(x.reshape(b * h, w, c)).view(b, h, w, c)
        columns = x.permute(0, 2, 1, 3).reshape(b * w, h, c)
        return x + self.column_attn(columns).view(b, w, h, c).permute(0, 2, 1, 3)


@pattern("self", "self", inputs=image, probe=None)
class AxialEinsum(FusedAttention):
    """CCNet-like: five axes by einsum, rows and columns from the same projection."""

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)) for t in self.to_qkv(x).chunk(3, dim=-1))
        rows = torch.einsum("bxihd,bxjhd->bxhij", q, k).mul(self.scale).softmax(-1)
        self.note(rows)
        out = torch.einsum("bxhij,bxjhd->bxihd", rows, v)
        columns = torch.einsum("biyhd,bjyhd->byhij", q, k).mul(self.scale).softmax(-1)
        self.note(columns)
        out = out + torch.einsum("byhij,bjyhd->biyhd", columns, v)
        return self.to_out(out.flatten(-2))


@pattern("self", probe=None, sizes=LONG, variants=COINCIDENT_BLOCKS)
class QueryChunks(Attention):
    """Memory-efficient attention: a loop over chunks of queries, then cat: one record."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        self.note_dot_product(q, k)
        chunks = []
        for chunk in q.split(4, dim=2):
            attn = (chunk @ k.mT * self.scale).softmax(dim=-1)
            chunks.append(attn @ v)
        return self.to_out(torch.cat(chunks, dim=2).transpose(1, 2).flatten(2))


@pattern("self", probe=None, sizes=LONG)
class QueryChunksInPlace(Attention):
    """Stable Diffusion forks: chunks are written into an empty output: one record."""

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b n (h d) -> (b h) n d", h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        self.note_dot_product(q, k, "(b h) q k -> b h q k", h=self.heads)
        out = torch.zeros_like(q)
        for i in range(0, q.shape[1], 8):
            s = torch.einsum("b i d, b j d -> b i j", q[:, i : i + 8], k) * self.scale
            out[:, i : i + 8] = torch.einsum("b i j, b j d -> b i d", s.softmax(dim=-1), v)
        return self.to_out(rearrange(out, "(b h) n d -> b n (h d)", h=self.heads))


@pattern("self", probe=None, sizes=Sizes(batch=4), is_open=True)
class SlicedAttention(Attention):
    """diffusers' sliced attention: a loop over slices of the batch of heads."""

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b n (h d) -> (b h) n d", h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        self.note_dot_product(q, k, "(b h) q k -> b h q k", h=self.heads)
        out = torch.zeros_like(q)
        for i in range(0, q.shape[0], 3):
            attn = torch.bmm(q[i : i + 3], k[i : i + 3].mT).mul(self.scale).softmax(dim=-1)
            out[i : i + 3] = torch.bmm(attn, v[i : i + 3])
        return self.to_out(rearrange(out, "(b h) n d -> b n (h d)", h=self.heads))


@pattern("self", "self", inputs=image, names=("spatial", "temporal"))
class DividedSpaceTime(nn.Module):
    """TimeSformer: attention over space, then over time, by einops."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.spatial, self.temporal = AxialLayer(sizes), AxialLayer(sizes)

    def forward(self, x):
        b, t = x.shape[:2]
        x = x + rearrange(
            self.spatial(rearrange(x, "b t n d -> (b t) n d")), "(b t) n d -> b t n d", b=b
        )
        time = rearrange(x, "b t n d -> (b n) t d")
        return x + rearrange(self.temporal(time), "(b n) t d -> b t n d", b=b, t=t)


@pattern("self", inputs=image, probe=None)
class FlattenedImage(FusedAttention):
    """Global attention over pixels in two axes: (x, y) of queries and keys, flattened."""

    def forward(self, x):
        b, h, w, c = x.shape
        q, k, v = (
            rearrange(t, "b x y (h d) -> b h (x y) d", h=self.heads)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        attn = (q @ k.transpose(-2, -1) * self.scale).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, h, w, c))


@pattern("self", inputs=image, probe=None, variants=COINCIDENT_IMAGES)
class OutlookAttention(Bare):
    """VOLO: a projection predicts the weights of all pairs in the window around each pixel."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.v = nn.Linear(sizes.width, sizes.width)
        self.attn = sharp_linear(sizes.width, 81 * sizes.heads)
        self.unfold = nn.Unfold(kernel_size=3, padding=1)
        self.pool = nn.AvgPool2d(kernel_size=1, ceil_mode=True)

    def forward(self, x):
        b, h, w, c = x.shape
        v = self.unfold(self.v(x).permute(0, 3, 1, 2))
        v = v.reshape(b, self.heads, c // self.heads, 9, h * w).permute(0, 1, 4, 3, 2)
        attn = self.pool(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        attn = self.attn(attn).reshape(b, h * w, self.heads, 9, 9).permute(0, 2, 1, 3, 4)
        attn = attn.softmax(dim=-1)
        self.note(attn.transpose(1, 2))
        x = (attn @ v).permute(0, 1, 4, 3, 2).reshape(b, c * 9, h * w)
        return F.fold(x, output_size=(h, w), kernel_size=3, padding=1)


@pattern("self", inputs=image, probe=None, variants=COINCIDENT_IMAGES)
class UnfoldedNeighbours(Bare):
    """Local attention of each pixel to its neighbours, which F.unfold gathers."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.qkv = nn.Conv2d(sizes.width, 3 * sizes.width, 1)

    def forward(self, x):
        height = x.shape[1]
        q, k, v = self.qkv(x.permute(0, 3, 1, 2)).chunk(3, dim=1)
        q = rearrange(q, "b (h d) x y -> b h (x y) 1 d", h=self.heads)
        k, v = (
            rearrange(F.unfold(t, 3, padding=1), "b (h d k) n -> b h n d k", h=self.heads, k=9)
            for t in (k, v)
        )
        attn = torch.softmax(q @ k, dim=-1)
        self.note(attn, "b h n 1 k -> b n h 1 k")
        out = torch.einsum("bhnqk,bhndk->bhnqd", attn, v)
        return rearrange(out, "b h (x y) 1 d -> b x y (h d)", x=height)


@pattern("self", probe=None, variants=("batch=heads", "heads=queries"))
class NeighbourhoodByStrides(Attention):
    """Each position attends to its neighbours, which as_strided repeats without a copy."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        k, v = self.neighbours(k), self.neighbours(v)
        attn = (q.unsqueeze(3) @ k.mT * self.scale).softmax(-1)
        self.note(attn, "b h n 1 k -> b n h 1 k")
        return self.to_out((attn @ v).squeeze(3).transpose(1, 2).flatten(2))

    def neighbours(self, x):
        b, h, n, d = x.shape
        padded = F.pad(x, (0, 0, 1, 1)).contiguous()
        first, second, step, one = padded.stride()
        return padded.as_strided((b, h, n, 3, d), (first, second, step, step, one))


@pattern("self", probe=None, variants={"heads=windows": Sizes(heads=2, queries=5)})
class WindowsByIndex(Attention):
    """Overlapping windows, picked by a matrix of indices."""

    def forward(self, x):
        index = torch.tensor([[0, 1, 2], [2, 3, 4]])
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)[:, :, index]
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn.transpose(1, 2))
        return self.to_out((attn @ v).permute(0, 2, 3, 1, 4).flatten(1, 2).flatten(2))


@pattern("self", probe=None, variants=("batch=heads", "batch_of_1"))
class NearestNeighbours(Attention):
    """Point transformers: each point attends to the nearest ones, which indices pick."""

    def forward(self, x):
        nearest = torch.cdist(x, x).topk(3, dim=-1, largest=False).indices
        items = torch.arange(len(x))[:, None, None]
        q, k, v = self.to_q(x), self.to_k(x)[items, nearest], self.to_v(x)[items, nearest]
        attn = ((q.unsqueeze(2) * k).sum(-1) * self.scale).softmax(-1)
        self.note(attn, "b n k -> b n 1 1 k")
        return self.to_out((attn.unsqueeze(-1) * v).sum(2))
