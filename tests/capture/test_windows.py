"""Attention within windows: an axis of its own in the record, positions in traces."""

import numpy as np
import pytest
import torch
from torch import nn

from regard import watch
from regard.errors import RegardError

HEIGHT, WIDTH, SIZE, HEADS, CHANNELS = 4, 6, 2, 3, 12


class WindowAttention(nn.Module):
    """Swin's attention within windows of an image, perhaps after a cyclic shift."""

    def __init__(self, shift=0, is_image=True):
        super().__init__()
        self.shift, self.is_image = shift, is_image
        self.qkv = nn.Linear(CHANNELS, 3 * CHANNELS)

    def forward(self, x):
        batch = len(x)
        x = x if self.is_image else x.view(batch, HEIGHT, WIDTH, CHANNELS)
        if self.shift:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        x = x.view(batch, HEIGHT // SIZE, SIZE, WIDTH // SIZE, SIZE, CHANNELS)
        windows = x.permute(0, 1, 3, 2, 4, 5).reshape(-1, SIZE * SIZE, CHANNELS)
        qkv = self.qkv(windows).view(-1, SIZE * SIZE, 3, HEADS, CHANNELS // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        return (q @ k.mT).softmax(-1) @ v

    def dense_weights(self, x):
        """Attention over all positions, with a mask that admits those of the same window."""
        rows = x.reshape(len(x), HEIGHT * WIDTH, CHANNELS)
        q, k, _ = self.qkv(rows).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        y, x = torch.meshgrid(torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij")
        y, x = (y - self.shift) % HEIGHT // SIZE, (x - self.shift) % WIDTH // SIZE
        window = (y * WIDTH + x).flatten()
        same = window[:, None] == window
        return (q @ k.mT).masked_fill(~same, -torch.inf).softmax(-1)


@pytest.mark.parametrize("is_image", [True, False])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("shift", [0, 1])
@torch.no_grad()
def test_windows_are_put_back_to_positions_in_a_trace(shift, batch, is_image):
    model, image = WindowAttention(shift, is_image), torch.randn(batch, HEIGHT, WIDTH, CHANNELS)
    with watch(model) as capture:
        model(image if is_image else image.flatten(1, 2))
    windows = HEIGHT * WIDTH // SIZE**2
    assert capture[0].weights.shape == (batch, windows, HEADS, SIZE**2, SIZE**2)
    assert capture[0].kind == "self"
    shown = capture.trace(batch_index=batch - 1).maps[0].weights
    expected = model.dense_weights(image)[batch - 1]
    np.testing.assert_allclose(shown, expected.numpy(), atol=1e-6)


class LocalAttention(nn.Module):
    """Each position attends to its neighbours, which `unfold` gathers from padded keys."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(CHANNELS, CHANNELS) for _ in range(3))

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        k, v = (nn.functional.pad(rows, (0, 0, 1, 1)).unfold(1, 3, 1) for rows in (k, v))
        weights = torch.einsum("bnd,bndk->bnk", q, k).softmax(-1)
        return torch.einsum("bnk,bndk->bnd", weights, v)


@torch.no_grad()
def test_overlapping_windows_are_put_back_without_padding():
    model, rows = LocalAttention(), torch.randn(2, 7, CHANNELS)
    with watch(model) as capture:
        model(rows)
    shown = capture.trace().maps[0].weights[0]
    distance = np.subtract.outer(np.arange(7), np.arange(7))
    scores = (model.q(rows) @ model.k(rows).mT)[0]
    padded = nn.functional.pad(model.k(rows) * 0, (0, 0, 1, 1))  # keys of zeros beyond the ends
    assert padded.shape[1] == 9
    exponentials = np.exp(scores.numpy()) * (abs(distance) <= 1)
    totals = exponentials.sum(-1)
    totals[[0, -1]] += 1  # exp(0) of a padded key
    np.testing.assert_allclose(shown, exponentials / totals[:, None], atol=1e-5)


class PaddedWindowAttention(WindowAttention):
    """SAM's attention, whose windows have rows of padding that a projection gives a bias."""

    def forward(self, x):
        rows, columns = (-(-n // SIZE) * SIZE for n in x.shape[1:3])
        padded = nn.functional.pad(x, (0, 0, 0, columns - x.shape[2], 0, rows - x.shape[1]))
        x = padded.view(len(x), rows // SIZE, SIZE, columns // SIZE, SIZE, CHANNELS)
        windows = x.permute(0, 1, 3, 2, 4, 5).reshape(-1, SIZE, SIZE, CHANNELS)
        qkv = self.qkv(windows).view(-1, SIZE * SIZE, 3, HEADS, CHANNELS // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        return (q @ k.mT).softmax(-1) @ v


@torch.no_grad()
def test_windows_with_padding_are_put_back_to_the_positions_of_the_image():
    model, height, width = PaddedWindowAttention(), HEIGHT - 1, WIDTH - 1
    nn.init.normal_(model.qkv.bias)
    image = torch.randn(2, height, width, CHANNELS)
    with watch(model) as capture:
        model(image)
    q, k, _ = model.qkv(image[1].flatten(0, 1)).unflatten(-1, (3, HEADS, -1)).permute(1, 2, 0, 3)
    padding = model.qkv.bias.unflatten(0, (3, HEADS, 1, -1))[1]
    scores, of_padding = (q @ k.mT).exp(), (q @ padding.mT).exp()
    row, column = (torch.arange(height * width) // width, torch.arange(height * width) % width)
    window = row // SIZE * WIDTH + column // SIZE
    inside = window[:, None] == window
    scores = scores * inside
    sums = scores.sum(-1, keepdim=True) + (SIZE * SIZE - inside.sum(-1))[:, None] * of_padding
    shown = capture.trace(batch_index=1).maps[0].weights
    np.testing.assert_allclose(shown, (scores / sums).numpy(), atol=1e-6)


@torch.no_grad()
def test_summarized_windows_are_refused_in_a_trace():
    model = WindowAttention()
    with watch(model, keep="summary") as capture:
        model(torch.randn(2, HEIGHT, WIDTH, CHANNELS))
    with pytest.raises(RegardError, match="keep='all'"):
        capture.trace()


@torch.no_grad()
def test_table_names_windows():
    model = WindowAttention()
    with watch(model) as capture:
        model(torch.randn(2, HEIGHT, WIDTH, CHANNELS))
    assert "4 × 4 in 6 windows" in str(capture)


@torch.no_grad()
def test_value_norms_of_windows_are_put_back_to_positions():
    model, image = WindowAttention(shift=1), torch.randn(2, HEIGHT, WIDTH, CHANNELS)
    with watch(model) as capture:
        model(image)
    shown = capture.trace(batch_index=1).maps[0].value_norms
    values = model.qkv(image[1].flatten(0, 1)).unflatten(-1, (3, HEADS, -1))[:, 2]
    np.testing.assert_allclose(shown, values.norm(dim=-1).T.numpy(), atol=1e-6)


@torch.no_grad()
def test_value_norms_of_overlapping_windows_ignore_padding():
    model, rows = LocalAttention(), torch.randn(2, 7, CHANNELS)
    with watch(model) as capture:
        model(rows)
    shown = capture.trace().maps[0].value_norms
    np.testing.assert_allclose(shown[0], model.v(rows)[0].norm(dim=-1).numpy(), atol=1e-6)


class GlobalQueryAttention(nn.Module):
    """GC ViT: all windows of rows have the same queries, convolved from the whole input."""

    def __init__(self):
        super().__init__()
        self.q = nn.Conv1d(CHANNELS, CHANNELS, 3, stride=3, bias=False)
        self.kv = nn.Linear(CHANNELS, 2 * CHANNELS)

    def forward(self, x):
        batch, length, _ = x.shape
        q = self.q(x.mT).flatten(2).mT
        windows = x.view(batch, length // 4, 4, CHANNELS).flatten(0, 1)
        k, v = self.kv(windows).view(len(windows), 4, 2, HEADS, -1).permute(2, 0, 3, 1, 4)
        q = q.repeat(len(windows) // len(q), 1, 1)
        q = q.view(len(windows), 4, HEADS, -1).transpose(1, 2)
        return (q @ k.mT).softmax(-1) @ v


@torch.no_grad()
def test_queries_that_windows_share_have_a_row_in_each_window():
    model = GlobalQueryAttention()
    with watch(model) as capture:
        model(torch.randn(2, 12, CHANNELS))
    (record,) = capture
    assert record.weights.shape == (2, 3, HEADS, 4, 4)
    assert record.kind == "cross"
    shown = capture.trace(batch_index=1).maps[0].weights
    assert shown.shape == (HEADS, 12, 12)
    np.testing.assert_allclose(shown.sum(-1), 1, atol=1e-6)
    for window in range(3):
        rows = slice(4 * window, 4 * window + 4)
        np.testing.assert_array_equal(shown[:, rows, rows], record.weights[1, window].numpy())


class FrameAttention(nn.Module):
    """Each pixel attends over the frames, which are the first axis."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(CHANNELS, 3 * CHANNELS)

    def forward(self, x):
        frames, *sides, _ = x.shape
        pixels = self.qkv(x.flatten(1, 2).transpose(0, 1)).unflatten(-1, (3, HEADS, -1))
        q, k, v = pixels.permute(2, 0, 3, 1, 4)
        out = nn.functional.scaled_dot_product_attention(q, k, v)
        return out.permute(2, 0, 1, 3).reshape(frames, *sides, CHANNELS)


@torch.no_grad()
def test_frames_of_a_single_video_leave_the_windows_uncertain():
    model = FrameAttention()
    with watch(model) as capture:
        model(torch.randn(5, HEIGHT, WIDTH, CHANNELS))
    assert capture[0].uncertain == ("window",)
    assert "uncertain axis: window" in str(capture)


class AveragedRounds(nn.Module):
    """Reformer's rounds of hashing: each query attends within two windows, which are averaged."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(CHANNELS, CHANNELS) for _ in range(3))

    def forward(self, x):
        orders = torch.stack([torch.arange(12), torch.arange(12).view(4, 3).T.flatten()])
        q, k, v = (layer(x)[:, orders].unflatten(2, (3, 4)) for layer in (self.q, self.k, self.v))
        return ((q @ k.mT).softmax(-1) @ v).flatten(2, 3).mean(1)


@torch.no_grad()
def test_queries_of_several_windows_are_refused_in_a_trace():
    model = AveragedRounds()
    with watch(model) as capture:
        model(torch.randn(2, 12, CHANNELS))
    with pytest.raises(RegardError, match="positions"):
        capture.trace()


class MirroredValues(nn.Module):
    """Blocks of a text in which a key multiplies the value of another position."""

    def __init__(self):
        super().__init__()
        self.k, self.v = nn.Linear(CHANNELS, CHANNELS), nn.Linear(CHANNELS, CHANNELS)

    def forward(self, x):
        k, v = self.k(x).unflatten(1, (4, 3)), self.v(x).flip(1).unflatten(1, (4, 3))
        return (k @ k.mT).softmax(-1) @ v


@torch.no_grad()
def test_windows_of_unknown_positions_are_marked_in_the_table_and_refused_in_a_trace():
    model = MirroredValues()
    with watch(model) as capture:
        model(torch.randn(2, 12, CHANNELS))
    assert "positions of windows unknown" in str(capture)
    with pytest.raises(RegardError, match="4 windows of MirroredValues are not known"):
        capture.trace()


class CopiedClassToken(nn.Module):
    """TimeSformer: each frame attends with a copy of the class token; the copies are averaged."""

    def __init__(self):
        super().__init__()
        self.first, self.last = (
            nn.MultiheadAttention(CHANNELS, HEADS, batch_first=True) for _ in range(2)
        )

    def forward(self, x):
        x = x + self.first(x, x, x)[0]
        frames = x[:, 1:].unflatten(1, (3, 4)).flatten(0, 1)
        token = x[:, None, :1].expand(-1, 3, -1, -1).flatten(0, 1)
        rows = torch.cat([token, frames], dim=1)
        rows = self.last(rows, rows, rows)[0].unflatten(0, (-1, 3))
        return torch.cat([rows[:, :, :1].mean(1), rows[:, :, 1:].flatten(1, 2)], dim=1)


@torch.no_grad()
def test_trace_leaves_out_windows_with_copies_of_a_token():
    model, rows = CopiedClassToken(), torch.randn(2, 13, CHANNELS)
    with watch(model) as capture:
        model(rows)
    assert capture.weights("last").shape == (2, 3, HEADS, 5, 5)
    with pytest.warns(UserWarning, match="trace leaves out last: several windows of last have"):
        trace = capture.trace(list("*abcdefghijkl"))
    assert [shown.name for shown in trace.maps] == ["first"]
    np.testing.assert_array_equal(trace.maps[0].weights, capture.weights("first")[0].numpy())
    with pytest.raises(RegardError, match="several windows of last"):
        capture.trace(modules="last")


class RegistersInWindows(nn.Module):
    """Two windows of four rows, each after copies of two learned registers."""

    def __init__(self):
        super().__init__()
        self.registers = nn.Parameter(torch.randn(2, CHANNELS))
        self.attention = nn.MultiheadAttention(CHANNELS, HEADS, batch_first=True)

    def forward(self, x):
        windows = x.unflatten(1, (2, 4)).flatten(0, 1)
        rows = torch.cat([self.registers.expand(len(windows), -1, -1), windows], dim=1)
        return self.attention(rows, rows, rows)[0]


@torch.no_grad()
def test_positions_of_learned_rows_come_after_those_of_the_text():
    expected = [[8, 9, 0, 1, 2, 3], [8, 9, 4, 5, 6, 7]]
    captures = []
    for _ in range(8):  # in any order in which memory is allocated
        model = RegistersInWindows()
        with watch(model) as capture:
            model(torch.randn(2, 8, CHANNELS))
        captures.append(capture)
    for capture in captures:
        positions = capture[0].axes.positions
        assert (positions.num_keys, positions.num_extra) == (8, 2)
        assert positions.queries.tolist() == positions.keys.tolist() == expected


class AttentionAlong(nn.Module):
    """Self-attention over the second axis of (group, row, channel)."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(CHANNELS, 3 * CHANNELS)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        self.weights = (q @ k.mT).softmax(-1)
        return (self.weights @ v).transpose(1, 2).flatten(2)


class AxialLayers(nn.Module):
    """Attention along columns, then along rows, each added to what it reads in its own layout."""

    def __init__(self):
        super().__init__()
        self.columns, self.rows = (nn.ModuleList(AttentionAlong() for _ in "ab") for _ in "ab")

    def forward(self, x):
        for columns, rows in zip(self.columns, self.rows, strict=True):
            x = x.view(-1, HEIGHT, WIDTH, CHANNELS).transpose(1, 2).flatten(0, 1)
            x = x + columns(x)
            x = x.view(-1, WIDTH, HEIGHT, CHANNELS).transpose(1, 2).flatten(0, 1)
            x = (x + rows(x)).view(-1, HEIGHT * WIDTH, CHANNELS)
        return x


@torch.no_grad()
def test_positions_are_those_of_the_input_in_all_layers():
    torch.manual_seed(0)
    model = AxialLayers()
    with watch(model) as capture:
        model(torch.randn(2, HEIGHT * WIDTH, CHANNELS))
    positions = np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)
    for shown in capture.trace(batch_index=1).maps:
        groups = positions.T if shown.name.startswith("columns") else positions
        expected = np.zeros((HEADS, HEIGHT * WIDTH, HEIGHT * WIDTH))
        weights = model.get_submodule(shown.name).weights.chunk(2)[1].numpy()
        for rows, own in zip(groups, weights, strict=True):
            expected[:, rows[:, None], rows] = own
        np.testing.assert_allclose(shown.weights, expected, atol=1e-6)


class Downsampled(nn.Module):
    """Swin's second stage: four rows of an image become one, then windows of these."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(5, CHANNELS)
        self.merge = nn.Linear(4 * CHANNELS, CHANNELS)
        self.attention = AttentionAlong()

    def forward(self, x):
        x = self.embed(x)
        parts = [x[:, n::2, m::2] for m in (0, 1) for n in (0, 1)]
        x = self.merge(torch.cat(parts, dim=-1))  # (batch, 4, 6, channel)
        windows = x.unflatten(1, (2, 2)).unflatten(3, (3, 2)).transpose(2, 3)
        return self.attention(windows.flatten(0, 2).flatten(1, 2))


@torch.no_grad()
def test_rows_that_were_merged_have_positions_of_their_own():
    torch.manual_seed(0)
    model = Downsampled()
    with watch(model) as capture:
        model(torch.randn(2, 2 * HEIGHT, 2 * WIDTH, 5))
    shown = capture.trace(batch_index=1).maps[0].weights
    assert shown.shape == (HEADS, HEIGHT * WIDTH, HEIGHT * WIDTH)
    first = model.attention.weights.chunk(2)[1][0]  # of the window in the corner
    rows = np.array([0, 1, WIDTH, WIDTH + 1])
    np.testing.assert_allclose(shown[:, rows[:, None], rows], first.numpy(), atol=1e-6)
