"""One softmax whose parts are multiplied with their values one by one: a single record."""

import torch

from capture.patterns.base import Attention, Sizes, pattern


class InParts(Attention):
    """Base of patterns that split the weights of one softmax along an axis."""

    def heads_of(self, rows):
        return rows.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def weights_and_values(self, x, context=None):
        context = x if context is None else context
        q, k = self.heads_of(self.to_q(x)), self.heads_of(self.to_k(context))
        weights = (q @ k.mT * self.scale).softmax(-1)
        self.note(weights)
        return weights, self.heads_of(self.to_v(context))

    def output(self, context):
        return self.to_out(context.transpose(1, 2).flatten(2))


@pattern("self", variants=True)
class KeyChunks(InParts):
    """Two chunks of keys, whose contexts are added."""

    def forward(self, x):
        weights, v = self.weights_and_values(x)
        parts = zip(weights.chunk(2, dim=-1), v.chunk(2, dim=2), strict=True)
        return self.output(sum(part @ values for part, values in parts))


@pattern("cross", variants=True)
class FirstKeyAndOthers(InParts):
    """The weight of a class token on a line, those of the other keys on another one."""

    def forward(self, x, y):
        weights, v = self.weights_and_values(x, y)
        first, others = weights.split([1, weights.shape[-1] - 1], dim=-1)
        context = first @ v[:, :, :1]
        context = context + others @ v[:, :, 1:]
        return self.output(context)


@pattern("cross", variants=True)
class OthersBeforeLastKey(InParts):
    """Slices: all keys but the last one, which may be a register, and then that one."""

    def forward(self, x, y):
        weights, v = self.weights_and_values(x, y)
        context = weights[..., :-1] @ v[:, :, :-1]
        return self.output(context + weights[..., -1:] @ v[:, :, -1:])


@pattern("cross")
class KeysOneByOne(InParts):
    """A loop over keys, to each of which all queries give their share."""

    def forward(self, x, y):
        weights, v = self.weights_and_values(x, y)
        keys = range(v.shape[2])
        context = [weights[..., n : n + 1] @ v[:, :, n : n + 1] for n in keys]
        return self.output(torch.stack(context).sum(0))


@pattern("self", variants=True)
class QueryChunksOfWeights(InParts):
    """Chunks of queries, each multiplied with all values."""

    def forward(self, x):
        weights, v = self.weights_and_values(x)
        return self.output(torch.cat([part @ v for part in weights.chunk(2, dim=2)], dim=2))


@pattern("self", variants=True)
class HeadGroups(InParts):
    """Two groups of heads, of different sizes if the number is odd."""

    def forward(self, x):
        weights, v = self.weights_and_values(x)
        parts = zip(weights.chunk(2, dim=1), v.chunk(2, dim=1), strict=True)
        return self.output(torch.cat([part @ values for part, values in parts], dim=1))


@pattern("self", sizes=Sizes(batch=4), variants=True)
class BatchHalves(InParts):
    """Two parts of a batch, to save memory."""

    def forward(self, x):
        weights, v = self.weights_and_values(x)
        parts = zip(weights.chunk(2), v.chunk(2), strict=True)
        return self.output(torch.cat([part @ values for part, values in parts]))


@pattern("self")
class WholeAndPart(InParts):
    """All weights with the values, and then those of the first keys with other vectors."""

    def forward(self, x):
        weights, v = self.weights_and_values(x)
        return self.output(weights @ v + 0 * (weights[..., :2] @ v[:, :, :2].sin()))
