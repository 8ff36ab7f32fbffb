"""Random attention calls, and the same computed plainly in float64 with a bound of rounding errors.

The reference knows nothing of backends: it builds masks from indices, scores every pair by its
formula, and normalises. Tolerances follow from the dtype's epsilon and the size of the terms:
a score that is rounded by δ changes its weight by a factor of at most e^2δ.
"""

import math
from dataclasses import dataclass, field
from random import Random

import torch
from torch import Tensor

from regard.attention import SCORE_NAMES, Score, make_score
from regard.masks import Mask, as_mask, causal, documents, lengths, padding, prefix, window

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
DISTANCE_SCORES = ("gaussian", "average", "boxcar", "triangular", "epanechnikov")
MASKS = ("causal", "window", "lengths", "prefix", "padding", "documents", "tensor")
COSINE_MIN_NORM = {torch.float16: 1e-3}


@dataclass
class Case:
    """One call: its inputs, and which pairs are allowed, as plain booleans."""

    seed: int
    name: str
    score: Score
    queries: Tensor
    keys: Tensor
    values: Tensor
    mask: Mask | None
    allowed: Tensor  # (*batch, query, key), with the queries' heads
    bias: Tensor | None
    backend: str | None
    needs_grad: bool
    single_query: bool
    parts: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        shapes = [tuple(x.shape) for x in (self.queries, self.keys, self.values)]
        mask = " ".join(self.parts) or "no mask"
        return (
            f"case {self.seed}: {self.name}, {self.queries.dtype}, {self.backend}, {shapes}, {mask}"
            f"{', bias' if self.bias is not None else ''}{', grad' if self.needs_grad else ''}"
        )


@dataclass
class Reference:
    """Context and weights in float64, and how far a computed one may be from them."""

    context: Tensor
    weights: Tensor
    context_tolerance: Tensor
    weight_tolerance: Tensor
    gradient_scale: float  # what the relative error of a gradient refers to
    relative_error: float
    is_smooth: bool  # no pair is at a kink, where a rounding error changes a slope


def draw_case(seed: int) -> Case:
    """Draw a call: every choice follows from the seed."""
    rng = Random(seed)
    torch.manual_seed(seed)
    name, dtype = SCORE_NAMES[seed % len(SCORE_NAMES)], rng.choice(DTYPES)
    batch, key_batch = rng.choice(
        [((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((2, 4), (2, 2)), ((2, 3), (1, 3)), ((1,), (2,))]
    )
    queries, keys = rng.choice([0, 1, 2, 3, 5, 6]), rng.choice([0, 1, 2, 3, 5, 7, 19])
    single_query = not rng.randrange(6)
    queries = 1 if single_query else queries
    width, value_width = rng.choice([1, 2, 3, 8]), rng.choice([1, 3, 8])
    spread, shift = rng.choice([0.03, 1.0, 1.0, 6.0]), 0.0
    if name in DISTANCE_SCORES:
        shift = rng.choice([0.0, 0.0, 30.0])
    score = make_score(name, (width, width))
    inputs = [
        spread * torch.randn(*batch, queries, width) + shift,
        spread * torch.randn(*key_batch, keys, width) + shift,
        torch.randn(*key_batch, keys, value_width),
    ]
    common = _common_batch(batch, key_batch)
    mask, allowed, parts = _draw_mask(rng, common, queries, keys)
    hidden = ~_visible(allowed, key_batch)
    largest = 6e4 if dtype == torch.float16 else 1e20
    if rng.random() < 0.5:
        inputs[1][hidden] = rng.choice([300.0, largest])
    elif keys and name in DISTANCE_SCORES and dtype != torch.float16 and rng.random() < 0.3:
        inputs[1][..., -1, :] = largest
    bias = None
    if rng.random() < 0.2:
        bias = torch.randn(queries, keys).to(rng.choice([dtype, torch.float32]))
    backends = [None, "dense", "blockwise"] + ["fused"] * score.is_dot_product
    rows = inputs[0][..., 0, :] if single_query else inputs[0]
    return Case(
        seed,
        name,
        score.to(dtype),
        rows.to(dtype),
        inputs[1].to(dtype),
        inputs[2].to(dtype),
        mask,
        allowed,
        bias,
        rng.choice(backends),
        rng.random() < 0.5,
        single_query,
        parts,
    )


def compute_reference(case: Case) -> tuple[Reference, tuple[Tensor, ...]]:
    """Return the reference, and its gradients of the context's sum of squares."""
    inputs = [x.detach().double() for x in (case.queries, case.keys, case.values)]
    inputs = [x.requires_grad_() for x in inputs]
    queries, keys, values = _expand(case, *inputs)
    allowed = case.allowed
    if case.name in ("boxcar", "triangular", "epanechnikov", "average"):
        mass, delta, slope, is_smooth = _kernel_mass(case, queries, keys)
        bias = torch.zeros(()) if case.bias is None else case.bias.detach().double()
        mass = mass * (bias - bias.amax() if bias.numel() else bias).exp()
    else:
        scores, delta, slope, is_smooth = _scores(case, queries, keys)
        if case.bias is not None:
            scores = scores + case.bias.double()
            delta = delta + 4 * _compute_eps(case) * case.bias.double().abs()
        scores = scores.masked_fill(~allowed, -math.inf)
        top = scores.detach().amax(-1, keepdim=True) if scores.shape[-1] else scores
        mass = (scores - top.where(top > -math.inf, torch.zeros(()))).exp()
    mass = torch.where(allowed, mass, 0.0)
    total = mass.sum(-1, keepdim=True)
    weights = torch.where(total > 0, mass / total.where(total > 0, torch.ones(())), 0.0)
    context = weights @ values
    gradients = torch.autograd.grad(
        context.square().sum(), inputs, allow_unused=True, materialize_grads=True
    )
    reference = _tolerances(case, weights.detach(), context.detach(), values.detach(), delta, slope)
    reference.is_smooth = is_smooth
    return reference, gradients


def _compute_eps(case: Case) -> float:
    """Return the epsilon of the dtype in which scores are computed."""
    is_double = case.queries.dtype == torch.float64
    return torch.finfo(torch.float64 if is_double else torch.float32).eps


def _scores(case: Case, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """Return scores, a bound of their rounding errors, and of their slopes, for every pair."""
    q, k = queries[..., :, None, :], keys[..., None, :, :]
    eps, width, score = _compute_eps(case), q.shape[-1], case.score
    steps = width + 8  # roundings of one sum
    if case.name in ("dot", "scaled_dot"):
        scale = 1.0 if case.name == "dot" else width**-0.5
        size = scale * (q.abs() * k.abs()).sum(-1)
        slope = scale * torch.maximum(q.abs().amax(-1), k.abs().amax(-1))
        return scale * (q * k).sum(-1), steps * eps * size.detach(), slope.detach(), True
    if case.name == "cosine":
        min_norm = COSINE_MIN_NORM.get(case.queries.dtype, 1e-8)
        norms = [_norm(x).clamp(min=min_norm) for x in (q, k)]
        cosine = (q / norms[0][..., None] * k / norms[1][..., None]).sum(-1)
        slope = 2 / torch.minimum(*norms).detach()
        return cosine, steps * eps * torch.ones_like(cosine).detach(), slope, True
    if case.name == "gaussian":
        difference = q - k
        squares = difference.square().sum(-1)
        # expanded around a key, terms are up to twice the square of the allowed points' extent
        far = difference.abs().masked_fill(~case.allowed[..., None], 0.0).detach()
        extent = 2 * _largest(far) * math.sqrt(width)
        size = min(2 * extent**2, 2.0**13)
        slope = difference.abs().amax(-1).detach()
        return -squares / 2, steps * eps * torch.full_like(squares, size).detach(), slope, True
    rounding = torch.finfo(case.queries.dtype).eps
    if case.name == "bilinear":
        matrix = score.matrix.detach().double()
        size = ((q.abs() @ matrix.abs()) * k.abs()).sum(-1).detach()
        largest = torch.maximum(q.abs().amax(-1), k.abs().amax(-1)).detach()
        slope = largest * matrix.abs().sum(0).amax()
        return ((q @ matrix) * k).sum(-1), 2 * steps * eps * size, slope, True
    first, second = score.query_projection.weight, score.key_projection.weight
    first, second, v = (x.detach().double() for x in (first, second, score.pairwise.v))
    a, b = q @ first.T, k @ second.T
    # the projections are rounded to the dtype of the module; tanh limits what remains of it
    terms = [x.abs() @ matrix.abs().T for x, matrix in ((q, first), (k, second))]
    error = steps * eps * (terms[0] + terms[1] + _largest(a)) + rounding * (a.abs() + b.abs())
    bound = (v.abs() * (error.clamp(max=2.0) + steps * eps)).sum(-1).detach()
    slope = (v.abs() * torch.maximum(first.abs().sum(1), second.abs().sum(1))).sum()
    return (v * torch.tanh(a + b)).sum(-1), bound, slope.expand(bound.shape), True


def _kernel_mass(case: Case, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """Return a kernel's value for every pair, with bounds of its error and of its slope."""
    eps = (queries.shape[-1] + 8) * _compute_eps(case)
    distance = _norm(queries[..., :, None, :] - keys[..., None, :, :])
    profiles = {
        "average": lambda d: torch.ones_like(d),
        "boxcar": lambda d: (d <= 1).double(),
        "triangular": lambda d: (1 - d).clamp(min=0),
        "epanechnikov": lambda d: (1 - d**2).clamp(min=0),
    }
    near_edge = (distance.detach() - 1).abs() < 4 * eps
    at_zero = (distance.detach() < 1e-3) & (case.name == "triangular")
    kinks = (near_edge | at_zero) & case.allowed & (case.name != "average")
    inside = (distance.detach() < 1).double()
    slope = {"triangular": inside, "epanechnikov": 2 * inside}.get(case.name, 0 * inside)
    bound = torch.full_like(inside, 4 * eps)
    if case.name != "average":
        bound = bound.masked_fill(distance.detach() > 1 + 4 * eps, 0.0)  # exactly 0 out there
    if case.name == "boxcar":
        bound = torch.where(near_edge, 1.0, bound)
    return profiles[case.name](distance), bound, slope, not kinks.any()


def _tolerances(
    case: Case, weights: Tensor, context: Tensor, values: Tensor, delta: Tensor, slope: Tensor
) -> Reference:
    keys = max(weights.shape[-1], 1)
    eps, rounding = _compute_eps(case), torch.finfo(case.queries.dtype).eps
    tiny = torch.finfo(case.queries.dtype).tiny
    worst = torch.where(case.allowed, delta, 0.0)
    if case.name in ("boxcar", "triangular", "epanechnikov", "average"):
        mass = _mass_of(case, weights)
        absolute = (worst + weights * worst.sum(-1, keepdim=True)) / mass.clamp(min=1e-300)
        weight_error = absolute.clamp(max=1.0) + keys * eps * weights
        relative = weight_error.sum(-1).amax().item() if weights.numel() else 0.0
        steepness = torch.where(case.allowed, slope, 0.0) / mass.clamp(min=1e-300)
    else:
        row = worst.amax(-1, keepdim=True) if weights.shape[-1] else worst.sum(-1, keepdim=True)
        factor = torch.expm1((2 * row).clamp(max=0.7)) + (keys + 16) * eps
        weight_error = (weights * factor).clamp(max=1.0)
        relative = factor.amax().item() if factor.numel() else 0.0
        steepness = weights * torch.where(case.allowed, slope, 0.0)
    # half precision rounds the weights that the kernel multiplies with, and the result
    largest = _largest(values)
    context_error = weight_error.sum(-1, keepdim=True) + (keys + 4) * eps + 2 * rounding
    flow = max(
        (steepness.sum(axis).amax().item() if steepness.numel() else 0.0) for axis in (-1, -2)
    )
    width = values.shape[-1]
    scale = 8 * width * largest**2 * (weights.shape[-2] + flow * _shared(case))
    return Reference(
        context,
        weights,
        context_error * largest + tiny,
        weight_error + rounding * weights + tiny,
        scale,
        relative + keys * eps + 4 * rounding,
        True,
    )


def _mass_of(case: Case, weights: Tensor) -> Tensor:
    """Return the sum of the kernel's values of each row, which weights are divided by."""
    queries, keys, _ = _expand(case, *(x.double() for x in (case.queries, case.keys, case.values)))
    mass = _kernel_mass(case, queries, keys)[0]
    return torch.where(case.allowed, mass, 0.0).sum(-1, keepdim=True)


def _shared(case: Case) -> int:
    """Return how many rows of the queries' batch one row of queries or keys may be shared by."""
    total = case.allowed.shape[:-2].numel()
    fewest = min(x.shape[:-2].numel() or 1 for x in (case.keys, case.values))
    return max(1, total // max(fewest, 1)) * 4


def _largest(tensor: Tensor) -> float:
    return tensor.detach().abs().amax().item() if tensor.numel() else 0.0


def _norm(vectors: Tensor) -> Tensor:
    """Return Euclidean norms with a gradient of 0 at vectors of zeros."""
    squares = vectors.square().sum(-1)
    return torch.where(squares > 0, squares.where(squares > 0, torch.ones(())).sqrt(), 0.0)


def _common_batch(batch: tuple[int, ...], key_batch: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(pair) for pair in zip(batch, key_batch, strict=True))


def _expand(
    case: Case, queries: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Repeat everything to the batch axes of the scores, one head of keys per head of queries."""
    batch = case.allowed.shape[:-2]
    queries = queries[..., None, :] if case.single_query else queries
    if len(batch) == 2 and 1 < keys.shape[-3] < batch[1]:
        repeat = batch[1] // keys.shape[-3]
        keys, values = (x.repeat_interleave(repeat, -3) for x in (keys, values))
    queries, keys, values = (x.expand(*batch, *x.shape[-2:]) for x in (queries, keys, values))
    return queries, keys, values


def _visible(allowed: Tensor, key_batch: tuple[int, ...]) -> Tensor:
    """Return which keys some query may attend to, for the batch axes of the keys."""
    visible = allowed.any(-2)
    if len(key_batch) == 2 and 1 < key_batch[1] < visible.shape[-2]:
        visible = visible.unflatten(-2, (key_batch[1], -1)).any(-2)
    for axis, size in enumerate(key_batch):
        if size == 1 and visible.shape[axis] > 1:
            visible = visible.any(axis, keepdim=True)
    return visible


def _draw_mask(
    rng: Random, batch: tuple[int, ...], queries: int, keys: int
) -> tuple[Mask | None, Tensor, list[str]]:
    """Draw up to three masks, each perhaps negated, combined by & and |."""
    count = rng.choice([0, 1, 1, 2, 2, 3])
    mask, allowed, parts = None, torch.ones(*batch, queries, keys, dtype=torch.bool), []
    for index in range(count):
        kind, negated = rng.choice(MASKS), rng.random() < 0.2
        part, pairs = _draw_part(rng, kind, batch, queries, keys)
        if negated:
            part, pairs = ~part, ~pairs
        union = index > 0 and rng.random() < 0.3
        if index == 0:
            mask, allowed = part, pairs
        else:
            mask = mask | part if union else mask & part
            allowed = allowed | pairs if union else allowed & pairs
        parts += [*(["|" if union else "&"] if index else []), *(["~"] if negated else []), kind]
    return mask, allowed, parts


def _draw_part(
    rng: Random, kind: str, batch: tuple[int, ...], queries: int, keys: int
) -> tuple[Mask | Tensor, Tensor]:
    """Draw a mask and the same by index arithmetic, (*batch, query, key)."""
    i, j = torch.arange(queries)[:, None], torch.arange(keys)
    items = batch[0] if batch else 1

    def full(pairs: Tensor) -> Tensor:
        """Expand (item, query, key) or (query, key) to the batch axes."""
        if not batch:
            return (pairs[0] if pairs.ndim == 3 else pairs).expand(queries, keys)
        pairs = pairs.expand(items, queries, keys)
        return pairs if len(batch) == 1 else pairs[:, None].expand(*batch, queries, keys)

    if kind == "causal":
        start = rng.randrange(0, max(keys, 1))
        return causal(align=start), full(j <= i + start)
    if kind == "window":
        behind, ahead, start = rng.randrange(4), rng.randrange(4), rng.randrange(0, max(keys, 1))
        own = i + start
        pairs = (j >= own - behind) & (j <= own + ahead)
        return window(behind, ahead, align=start), full(pairs)
    if kind in ("lengths", "prefix"):
        counts = torch.tensor([rng.randint(0, keys) for _ in range(items)])
        make = lengths if kind == "lengths" else prefix
        return make(counts if batch else int(counts[0])), full(j < counts[:, None, None])
    if kind == "padding":
        keep = torch.tensor([[rng.random() < 0.6 for _ in range(keys)] for _ in range(items)])
        keep = keep.reshape(items, keys).bool()
        return padding(keep if batch else keep[0]), full(keep[:, None, :])
    if kind == "documents":
        ids, key_ids = torch.randint(0, 2, (items, queries)), torch.randint(0, 2, (items, keys))
        pairs = full(ids[:, :, None] == key_ids[:, None, :])
        return (documents(ids, key_ids) if batch else documents(ids[0], key_ids[0])), pairs
    tensor = torch.rand(*batch, queries, keys) < 0.6
    return as_mask(tensor), tensor
