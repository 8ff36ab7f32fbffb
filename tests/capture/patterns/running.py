"""How a model is called and its code arranged: caches, checkpoints, closures, dtypes, in place."""

import copy
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from capture.patterns.base import (
    Attention,
    Bare,
    Sizes,
    one_text,
    pattern,
    sharp_linear,
    two_texts,
)


def heads_of(rows: Tensor, heads: int) -> Tensor:
    return rows.unflatten(-1, (heads, -1)).transpose(1, 2)


def joined(context: Tensor) -> Tensor:
    return context.transpose(1, 2).flatten(2)


class Plain(Attention):
    """A layer for the wrappers below."""

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return self.to_out(joined(attn @ v))


def backward(model: nn.Module, *inputs: Any) -> list[Tensor]:
    """Return the output and all gradients."""
    out = model(*inputs)
    out.square().sum().backward()
    return [out, *(p.grad for p in model.parameters() if p.grad is not None)]


@pattern("self", run=backward, probe=None)
class Backward(Plain):
    """A training step: gradients are identical, too."""


def without_grad(model: nn.Module, *inputs: Any) -> Any:
    with torch.no_grad():
        return model(*inputs)


@pattern("self", run=without_grad)
class NoGrad(Plain):
    """torch.no_grad around the call."""


def in_inference_mode(model: nn.Module, *inputs: Any) -> Any:
    with torch.inference_mode():
        return model(*inputs)


@pattern("self", run=in_inference_mode)
class InferenceMode(Plain):
    """torch.inference_mode around the call."""


def inputs_with_gradients(sizes: Sizes) -> tuple[Tensor, ...]:
    return tuple(x.requires_grad_() for x in one_text(sizes))


@pattern("self", inputs=inputs_with_gradients, run=backward, probe=None)
class InputsWithGradients(Plain):
    """Saliency: inputs that require gradients."""


def functional_call(model: nn.Module, *inputs: Any) -> Any:
    parameters = {name: 1.5 * value.detach() for name, value in model.named_parameters()}
    return torch.func.functional_call(model, parameters, inputs)


@pattern("self", run=functional_call, probe=None)
class FunctionalCall(Plain):
    """Meta-learning: torch.func.functional_call with other parameters."""


class NotedOnce(Plain):
    """A layer whose recomputation in the backward pass is not noted again."""

    def note(self, weights, layout="", **sizes):
        if not self.truth:
            super().note(weights, layout, **sizes)


@pattern("self", names=("layer",), run=backward)
class Checkpointed(nn.Module):
    """Activation checkpointing without re-entrance: recomputed, but recorded once."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.layer = NotedOnce(sizes)

    def forward(self, x):
        return checkpoint(self.layer, x, use_reentrant=False)


@pattern("self", "self", names=("layer", "layer"))
class CalledTwice(nn.Module):
    """Universal Transformer: one module, called twice."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.layer = Plain(sizes)

    def forward(self, x):
        for _ in range(2):
            x = x + self.layer(x)
        return x


@pattern("self", "self", names=("0", "2"))
class Stacked(nn.Sequential):
    """nn.Sequential of attention and feed-forward layers."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(Plain(sizes), nn.Linear(sizes.width, sizes.width), Plain(sizes))


@pattern("self", "self", names=("layers.0.fn", "layers.1.fn"))
class ResidualWrappers(nn.Module):
    """lucidrains' PreNorm and Residual: a wrapper around each layer."""

    class PreNorm(nn.Module):
        def __init__(self, width: int, fn: nn.Module) -> None:
            super().__init__()
            self.norm, self.fn = nn.LayerNorm(width), fn

        def forward(self, x, **kwargs):
            return self.fn(self.norm(x), **kwargs) + x

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList([self.PreNorm(sizes.width, Plain(sizes)) for _ in range(2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@pattern("self", names=("attend",))
class AttendModule(Bare):
    """x-transformers: a module without projections for the inner part."""

    class Attend(Bare):
        def forward(self, q, k, v):
            attn = torch.einsum("bhid,bhjd->bhij", q, k).mul(self.scale).softmax(-1)
            self.note(attn)
            return torch.einsum("bhij,bhjd->bhid", attn, v)

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.qkv = sharp_linear(sizes.width, 3 * sizes.width)
        self.attend = self.Attend(sizes)

    def forward(self, x):
        q, k, v = (heads_of(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        return joined(self.attend(q, k, v))


@pattern("self", names=("softmax",))
class WeightsFromSubmodule(Bare):
    """A submodule computes the weights and the product; the parent only projects."""

    class ScaledDotProduct(Bare):
        def forward(self, q, k, v, mask=None):
            attn = torch.matmul(q / self.head_width**0.5, k.transpose(2, 3))
            if mask is not None:
                attn = attn.masked_fill(mask == 0, -1e9)
            attn = F.softmax(attn, dim=-1)
            self.note(attn)
            return torch.matmul(attn, v), attn

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.qkv = sharp_linear(sizes.width, 3 * sizes.width)
        self.softmax = self.ScaledDotProduct(sizes)

    def forward(self, x):
        q, k, v = (heads_of(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        out, _ = self.softmax(q, k, v)
        return joined(out)


@pattern("self")
class FirstArgumentNamedThis(Plain):
    """forward(this, x): the name of the first argument does not matter."""

    def forward(this, x):
        q, k, v = (heads_of(layer(x), this.heads) for layer in (this.to_q, this.to_k, this.to_v))
        attn = (q @ k.mT * this.scale).softmax(-1)
        this.note(attn)
        return this.to_out(joined(attn @ v))


@pattern("self")
class ForwardAsFunction(Plain):
    """forward(*args, **kwargs) without named arguments."""

    def forward(*args, **kwargs):
        self, x = args
        return Plain.forward(self, x, **kwargs)


@pattern("self")
class Closure(Plain):
    """A function inside forward."""

    def forward(self, x):
        def attend(q, k, v):
            attn = (q @ k.mT * self.scale).softmax(-1)
            self.note(attn)
            return attn @ v

        heads = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        return self.to_out(joined(attend(*heads)))


@pattern("self")
class StaticMethod(Plain):
    """A static method that knows no module."""

    @staticmethod
    def attend(q, k, v):
        attn = F.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        return attn @ v, attn

    def forward(self, x):
        out, attn = self.attend(
            *(heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        )
        self.note(attn)
        return self.to_out(joined(out))


def attention(query, key, value, mask=None, dropout=None):
    """Attention as a plain function, as in the annotated Transformer."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


@pattern("self")
class FunctionOutside(Plain):
    """The annotated Transformer: a function outside of the module."""

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        out, p_attn = attention(q, k, v)
        self.note(p_attn)
        return self.to_out(joined(out))


@pattern("self")
class PartialFunction(Plain):
    """A functools.partial stored on the module."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.attend = partial(attention, mask=None, dropout=None)

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        out, p_attn = self.attend(q, k, v)
        self.note(p_attn)
        return self.to_out(joined(out))


@pattern("self")
class Lambda(Plain):
    """Lambdas and map."""

    def forward(self, x):
        q, k, v = map(lambda f: heads_of(f(x), self.heads), (self.to_q, self.to_k, self.to_v))  # noqa: C417
        attn = (lambda scores: scores.softmax(-1))(q @ k.mT * self.scale)
        self.note(attn)
        return self.to_out(joined(attn @ v))


@pattern("self")
class GeneratorExpression(Plain):
    """A generator expression that yields the context of each item: one record."""

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        attn = torch.softmax(q @ k.mT * self.scale, dim=-1)
        self.note(attn)
        return self.to_out(joined(torch.stack(tuple(w @ y for w, y in zip(attn, v, strict=True)))))


@pattern("causal")
class MaskedFillInPlace(Plain):
    """scores.masked_fill_ and div_ in place."""

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        scores = q @ k.mT
        scores.mul_(self.scale)
        scores.masked_fill_(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        attn = scores.softmax(-1)
        self.note(attn)
        return self.to_out(joined(attn @ v))


@pattern("self", run=without_grad, applied=None, sums_to_one=False)
class WeightsMultipliedInPlace(Plain):
    """attn.mul_ after the softmax."""

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        attn.mul_(torch.linspace(0.5, 1, attn.shape[-1]))
        self.note(attn)
        return self.to_out(joined(attn @ v))


@pattern("self", run=without_grad)
class SoftmaxOut(Plain):
    """torch.softmax with out=: the weights overwrite the scores."""

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        scores = q @ k.mT * self.scale
        torch.softmax(scores, dim=-1, out=scores)
        self.note(scores)
        return self.to_out(joined(scores @ v))


@pattern("self", run=without_grad)
class MatmulOut(Plain):
    """Products with out= into buffers that are used again."""

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        scores = torch.empty(*q.shape[:3], k.shape[2])
        torch.matmul(q * self.scale, k.mT, out=scores)
        attn = torch.softmax(scores, -1)
        self.note(attn)
        context = torch.empty_like(q)
        torch.matmul(attn, v, out=context)
        return self.to_out(joined(context))


@pattern("self", run=without_grad)
class WeightsOverwrittenAfterwards(Plain):
    """The buffer of the weights is cleared after use; the record keeps what was used."""

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        out = attn @ v
        attn.zero_()
        return self.to_out(joined(out))


@pattern("self")
class SoftmaxDtype(Plain):
    """torch.softmax(x, dim=-1, dtype=torch.float32)."""

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        attn = torch.softmax(q @ k.mT * self.scale, dim=-1, dtype=torch.float32)
        self.note(attn)
        return self.to_out(joined(attn @ v))


def doubles(sizes: Sizes) -> tuple[Tensor, ...]:
    return tuple(x.double() for x in one_text(sizes))


@pattern("self", inputs=doubles, tolerance=1e-6)
class Float64(Plain):
    """A model in double precision."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.double()


def halves(sizes: Sizes) -> tuple[Tensor, ...]:
    return tuple(x.half() for x in one_text(sizes))


@pattern("self", inputs=halves, tolerance=1e-3, sums_to_one=False, probe=None)
class Float16(Plain):
    """A model in half precision, with the softmax in float32 and cast back."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.half()

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        attn = F.softmax(q @ k.mT * self.scale, dim=-1, dtype=torch.float32).to(q.dtype)
        self.note(attn)
        return self.to_out(joined(attn @ v))


def autocast_float16(model: nn.Module, *inputs: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.float16):
        return model(*inputs)


@pattern("self", run=autocast_float16, tolerance=1e-3, probe=None)
class Autocast(Plain):
    """torch.autocast to float16 around the call."""


@pattern("self", train=True, run=backward, probe=None)
class TrainingMode(Plain):
    """Training mode with dropout on the weights and the output."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return self.drop(self.to_out(joined(self.drop(attn) @ v)))


def deep_copied(model: nn.Module, *inputs: Any) -> Any:
    """Return the output of a copy and of the model itself; only the latter is watched.

    As in distillation, the function's first argument is the watched model.
    """
    twin = copy.deepcopy(model)
    twin.truth = None
    return twin(*inputs), model(*inputs)


@pattern("self", run=deep_copied, probe=None)
class OtherModelToo(Plain):
    """Another model runs inside the same `watch`; it is not recorded."""


@pattern("causal", inputs=two_texts, probe=None)
class MemoryBeforeText(Plain):
    """Transformer-XL: keys are projected from the states of the text before and the text's own."""

    def forward(self, x, memory):
        rows = torch.cat([memory, x], dim=1)
        q, k, v = (
            heads_of(layer(y), self.heads)
            for layer, y in ((self.to_q, x), (self.to_k, rows), (self.to_v, rows))
        )
        future = torch.ones(q.shape[2], k.shape[2]).triu(1 + memory.shape[1]).bool()
        attn = (q @ k.mT * self.scale).masked_fill(future, -torch.inf).softmax(-1)
        self.note(attn)
        return self.to_out(joined(attn @ v))


class Cached(Attention):
    """Base of generation: one token at a time, keys and values are kept; one record."""

    def forward(self, x):
        cache: Any = self.empty_cache(x)
        rows = []
        for t in range(x.shape[1]):
            row = self.embed(x[:, t : t + 1])
            q, k, v = (
                heads_of(layer(row), self.heads) for layer in (self.to_q, self.to_k, self.to_v)
            )
            k, v, cache = self.extend(cache, k, v, t)
            rows.append(self.attend(q, k, v))
        return self.to_out(torch.cat(rows, dim=1))

    def embed(self, row: Tensor) -> Tensor:
        return row

    def empty_cache(self, x: Tensor) -> Any:
        return None

    def extend(self, cache: Any, k: Tensor, v: Tensor, t: int) -> tuple[Tensor, Tensor, Any]:
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        return k, v, (k, v)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return joined(attn @ v)


@pattern("causal", steps=True, probe=None, variants=("batch=heads", "heads=queries"))
class CacheByCat(Cached):
    """GPT-2's cache: cat of past and present, once per token."""


@pattern("causal", steps=True, probe=None)
class CacheByCatSdpa(Cached):
    """The same with the fused kernel."""

    def attend(self, q, k, v):
        self.note_dot_product(q, k)
        return joined(F.scaled_dot_product_attention(q, k, v))


@pattern("causal", steps=True, probe=None)
class CacheBeforeRotation(Cached):
    """x-transformers: cached keys are rotated in each step, by angles that are a product."""

    def embed(self, row):
        return F.layer_norm(row, row.shape[-1:])

    def attend(self, q, k, v):
        frequencies = 10.0 ** -torch.arange(self.head_width // 2)
        angles = torch.einsum("n, f -> n f", torch.arange(k.shape[2]).float(), frequencies)
        angles = torch.cat([angles, angles], dim=-1)
        q, k = self.rotate(q, angles[-1:]), self.rotate(k, angles)
        attn = torch.einsum("b h q d, b h k d -> b h q k", q, k).mul(self.scale).softmax(dim=-1)
        self.note(attn)
        return joined(attn @ v)

    def rotate(self, x, angles):
        first, second = x.chunk(2, dim=-1)
        return x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()


@pattern("causal", steps=True, probe=None)
class CacheStatic(Cached):
    """Llama's cache: buffers of the full length, written in place and sliced."""

    def empty_cache(self, x):
        shape = x.shape[0], self.heads, 16, self.head_width
        return torch.zeros(shape), torch.zeros(shape)

    def extend(self, cache, k, v, t):
        keys, values = cache
        keys[:, :, t : t + 1], values[:, :, t : t + 1] = k.detach(), v.detach()
        return keys[:, :, : t + 1], values[:, :, : t + 1], cache


@pattern("causal", steps=True, probe=None, variants=("batch=heads", "heads=queries"))
class CacheOfLatents(Attention):
    """DeepSeek's latent attention: queries are mapped to the cached latents, without keys."""

    def __init__(self, sizes):
        super().__init__(sizes)
        del self.to_k, self.to_v
        self.to_latents = nn.Linear(sizes.width, 8)
        self.keys_of_latents = nn.Parameter(torch.randn(sizes.heads, sizes.head_width, 8))
        self.values_of_latents = nn.Parameter(torch.randn(sizes.heads, sizes.head_width, 8))

    def forward(self, x):
        latents, rows = x[:, :0, :8], []
        for t in range(x.shape[1]):
            latents = torch.cat([latents, self.to_latents(x[:, t : t + 1])], dim=1)
            rows.append(self.attend(x[:, t : t + 1], latents))
        return self.to_out(torch.cat(rows, dim=1))

    def attend(self, row, latents):
        q = self.to_q(row).unflatten(-1, (self.heads, -1))
        q = torch.einsum("bshd,hdc->bshc", q, self.keys_of_latents)
        attn = (torch.einsum("bshc,btc->bsht", q, latents) * self.scale).softmax(-1)
        self.note(attn, "b s h t -> b h s t")
        context = torch.einsum("bsht,btc->bshc", attn, latents)
        return torch.einsum("bshc,hdc->bshd", context, self.values_of_latents).flatten(2)


@pattern("causal", steps=True, probe=None)
class CacheInLists(Cached):
    """A tutorial's cache: lists of rows, concatenated at each step."""

    def empty_cache(self, x):
        return [], []

    def extend(self, cache, k, v, t):
        cache[0].append(k)
        cache[1].append(v)
        return torch.cat(cache[0], dim=2), torch.cat(cache[1], dim=2), cache


@pattern("causal", steps=True, probe=None)
class GrowingPrefix(Attention):
    """A loop over positions that slices the keys before each: one record of all rows."""

    def forward(self, x):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        rows = []
        for t in range(x.shape[1]):
            attn = torch.softmax(q[:, :, t : t + 1] @ k[:, :, : t + 1].mT * self.scale, dim=-1)
            self.note(attn)
            rows.append(attn @ v[:, :, : t + 1])
        return self.to_out(joined(torch.cat(rows, dim=2)))


def decode_by_calls(model: nn.Module, *inputs: Any) -> Tensor:
    """Call the model once per token, with the cache that it returned."""
    cache, rows = None, []
    for row in inputs[0].split(1, dim=1):
        out, cache = model(row, cache)
        rows.append(out)
    return torch.cat(rows, dim=1)


@pattern("causal", steps=True, probe=None, run=decode_by_calls)
class CacheByCalls(Attention):
    """transformers' generate: one call of the model per token, with past_key_values."""

    def forward(self, x, past=None):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=-2), torch.cat((past[1], v), dim=-2)
        attn = F.softmax(torch.matmul(q, k.transpose(-1, -2)) * self.scale, dim=-1)
        self.note(attn)
        return self.to_out(joined(torch.matmul(attn, v))), (k, v)


def prompt_then_steps(model: nn.Module, *inputs: Any) -> Tensor:
    """Call the model with a prompt of three tokens, then once per token."""
    out, cache = model(inputs[0][:, :3])
    rows = [out]
    for row in inputs[0][:, 3:].split(1, dim=1):
        out, cache = model(row, cache)
        rows.append(out)
    return torch.cat(rows, dim=1)


@pattern("causal", steps=True, probe=None, run=prompt_then_steps)
class PromptThenSteps(CacheByCalls):
    """A prompt with a causal mask, then one call per token: one record."""

    def forward(self, x, past=None):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=-2), torch.cat((past[1], v), dim=-2)
        n, m = q.shape[2], k.shape[2]
        mask = torch.ones(n, m, dtype=torch.bool).tril(m - n)
        scores = torch.matmul(q, k.transpose(-1, -2)) * self.scale
        attn = F.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
        self.note(attn)
        return self.to_out(joined(torch.matmul(attn, v))), (k, v)
