"""One layer of a Transformer: attentions and feed-forward, each residual."""

from torch import Tensor, nn

from regard.attention import BeamTree, KeyValues, KVCache, MultiHeadAttention
from regard.masks import Mask
from regard.models.layers import FeedForward, Residual

Notes = list[Tensor] | None
"""Where to note the weights of a pass, layer by layer; None to pass without them."""


class Layer(nn.Module):
    """Self-attention, attention to a source if there is one, and feed-forward, each residual.

    A layer receives its attentions ready-made, so any fits.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feed_forward: FeedForward,
        cross: MultiHeadAttention | None = None,
        *,
        dropout: float = 0.0,
        pre_norm: bool = False,
    ) -> None:
        super().__init__()
        width = attention.query.in_features
        self.attention = attention
        self.cross = cross
        self.feed_forward = feed_forward
        self.around_attention = Residual(width, dropout, pre_norm)
        self.around_cross = None if cross is None else Residual(width, dropout, pre_norm)
        self.around_feed_forward = Residual(width, dropout, pre_norm)

    def forward(
        self,
        rows: Tensor,
        mask: Mask | None = None,
        source: KeyValues | None = None,
        source_mask: Mask | None = None,
        notes: tuple[Notes, Notes] = (None, None),
    ) -> Tensor:
        """Change all rows at once; note the weights of self-attention and of cross-attention."""
        rows = self.around_attention(
            rows, lambda rows: _noted(self.attention, rows, None, mask, notes[0])
        )
        return self._finished(rows, source, source_mask, notes[1])

    def step(
        self,
        rows: Tensor,
        cache: KVCache,
        branches: BeamTree,
        source: KeyValues | None = None,
        source_mask: Mask | None = None,
    ) -> tuple[Tensor, KVCache]:
        """Change one new row per continuation, (sentence, continuation, width)."""
        grown = cache

        def attend(rows: Tensor) -> Tensor:
            nonlocal grown
            context, grown = self.attention.attend_beams(rows, cache, branches)
            return context

        rows = self.around_attention(rows, attend)
        # continuations of one sentence look side by side at one source, which is never repeated
        return self._finished(rows, source, source_mask, None), grown

    def _finished(
        self,
        rows: Tensor,
        source: KeyValues | None,
        source_mask: Mask | None,
        notes: Notes,
    ) -> Tensor:
        if self.cross is not None and self.around_cross is not None:
            if source is None:
                raise ValueError(
                    "this layer has cross-attention and needs a source to look at, but none was "
                    "given; a layer without cross= would do"
                )
            cross = self.cross
            rows = self.around_cross(
                rows, lambda rows: _noted(cross, rows, source, source_mask, notes)
            )
        changed: Tensor = self.around_feed_forward(rows, self.feed_forward)
        return changed


def _noted(
    attention: MultiHeadAttention,
    rows: Tensor,
    source: KeyValues | None,
    mask: Mask | None,
    notes: Notes,
) -> Tensor:
    """Attend, and note the weights if someone wants them."""
    if notes is None:
        plain: Tensor = attention(rows, source, mask=mask)
        return plain
    context, weights = attention.look(rows, source, mask=mask)
    notes.append(weights)
    return context
