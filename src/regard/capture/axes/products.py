"""Products of tensors: projections make features, and products of features compare rows."""

from typing import Any

from regard.capture.axes.combining import as_compared, shared_axis
from regard.capture.axes.label_store import AxesOfResults, LabelledCall, Labels, LabelStore
from regard.capture.axes.labels import Axes, Axis, Factor, axis_size, new_axis
from regard.capture.functions import Equation


def project(call: LabelledCall) -> AxesOfResults:
    """Label the result of a linear layer, whose last axis it makes."""
    _mark_features(call.axes(call.first)[-1])
    return [(*call.axes(call.first)[:-1], _made_axis(call, call.results[0].shape[-1]))]


def embed(call: LabelledCall) -> AxesOfResults:
    """Label embeddings: the axes of the ids, and features."""
    ids = call.inputs[0] if not call.inputs[0].is_floating_point() else call.inputs[1]
    return [(*call.axes(ids), new_axis(call.results[0].shape[-1], is_projected=True))]


def convolve(call: LabelledCall) -> AxesOfResults:
    """Label the result of a convolution, whose channels it makes."""
    tensor, out = call.first, call.results[0]
    if tensor.ndim != out.ndim:
        return [None]
    kept = [
        axis if axis_size(axis) == size else new_axis(size)
        for axis, size in zip(call.axes(tensor), out.shape, strict=True)
    ]
    channel = 1 if out.ndim > 2 else 0
    _mark_features(call.axes(tensor)[channel])
    kept[channel] = _made_axis(call, out.shape[channel])
    return [tuple(kept)]


def _made_axis(call: LabelledCall, size: int) -> Axis:
    """Return an axis that the second argument makes."""
    axis, maker = new_axis(size, is_projected=True), call.inputs[1]
    for factor in axis:
        factor.origin.maker = id(maker) if call.store.is_parameter(maker) else None
    return axis


def _mark_features(axis: Axis) -> None:
    """Mark an axis of an input as features, if that is where they are, for it was projected."""
    for factor in axis:
        origin = factor.origin
        if origin.may_be_feature and factor.size == origin.size:
            origin.is_feature = True
            for other in (origin, *origin.others):
                other.may_be_feature = False


def multiply(call: LabelledCall) -> AxesOfResults | None:
    """Label a product, and recognise what its operands compare.

    A product of vectors over their width compares rows: those of the second operand become keys,
    which are no features even if a projection made them.
    """
    if (equation := call.call.equation()) is None:
        return None
    if _is_projection(equation, call.store):
        size = equation.operands[1].shape[equation.terms[1].index(equation.result[-1])]
        return [(*call.axes(equation.operands[0])[:-1], new_axis(size, is_projected=True))]
    operands = [call.store.labels(x) for x in equation.operands]
    return [_through_product(equation, operands, call.weights is None)]


def _through_product(equation: Equation, operands: list[Labels], compares: bool) -> Axes:
    letters: dict[Any, Axis] = {}
    for labels, term in zip(operands, equation.terms, strict=True):
        for letter, axis in zip(term, labels.axes, strict=True):
            letters[letter] = shared_axis(letters.get(letter, ()), axis, labels.axes)
    projected = _projected_letters(equation, operands)
    if projected:
        for letter in projected:
            letters[letter] = new_axis(axis_size(letters[letter]), is_projected=True)
    elif compares and len(operands) == 2:
        _mark_compared(equation, letters)
    return tuple(letters[letter] for letter in equation.result)


def _projected_letters(equation: Equation, operands: list[Labels]) -> set[Any]:
    """Return the axes of the result that a parameter makes.

    A single one of a first operand is no projection: learned queries are compared with keys.
    """
    if all(labels.is_parameter for labels in operands):
        return set()
    found: set[Any] = set()
    for n, labels in enumerate(operands):
        others = {x for m, term in enumerate(equation.terms) if m != n for x in term}
        own = [x for x in equation.terms[n] if x in equation.result and x not in others]
        if labels.is_parameter and (n or len(own) > 1):
            found.update(own)
    return found


def _mark_compared(equation: Equation, letters: dict[Any, Axis]) -> None:
    first, second = map(set, equation.terms)
    result = set(equation.result)
    width = [f for x in (first & second) - result for f in letters[x]]
    rows = [(first - second) & result, (second - first) & result]
    row_factors = [f for side in rows for x in side for f in letters[x]]
    if not width or not all(rows):
        return
    if _are_channels(row_factors, width):
        for factor in row_factors:
            factor.origin.is_feature = True
    if not any(f.origin.is_feature for f in (*row_factors, *width)):
        if _pools_rows(rows, letters, width):
            return
        for factor in width:
            factor.origin.is_feature = factor.origin.root.is_feature = True
    if not any(f.origin.is_feature for f in width):
        return  # a product over rows, as of channel attention
    sides = [[f for x in side for f in letters[x]] for side in rows]
    has_heads = not all(any(f.origin.is_feature for f in side) for side in sides)
    roots = {f.origin.root for f in width}
    compared = {}
    for number, (side, factors) in enumerate(zip(rows, sides, strict=True), start=1):
        for letter in side:
            heads = [has_heads and f.origin.is_feature for f in letters[letter]]
            has_row = not all(letters[x] for x in side)  # a single one, as in a generation step
            if not has_row and all(f.origin.is_feature for f in factors):  # rows are compared
                heads = [has_heads and f.origin.root in roots for f in letters[letter]]
                heads = [False] * len(heads) if len(side) == 1 and all(heads) else heads
            compared[letter] = tuple(
                factor if is_head else as_compared((factor,), number)[0]
                for factor, is_head in zip(letters[letter], heads, strict=True)
            )
    letters.update(compared)


def _pools_rows(rows: list[set[Any]], letters: dict[Any, Axis], width: list[Factor]) -> bool:
    """Return whether a product is over the rows of an input, whose features are left.

    As where a matrix, of which nothing is known, adds up the rows of each segment of a text.
    """
    sides = [any(f.origin.may_be_feature for x in side for f in letters[x]) for side in rows]
    return sum(sides) == 1 and not any(f.origin.may_be_feature for f in width)


def _are_channels(rows: list[Factor], width: list[Factor]) -> bool:
    """Return whether channels of an image are compared, over all its pixels."""
    sides = {f.origin.root for f in width}
    is_image = len(sides) > 1 and all(x.is_input and not x.is_feature for x in sides)
    return is_image and all(f.origin.root.may_be_feature for f in rows)


def _is_projection(equation: Equation, store: LabelStore) -> bool:
    """Return whether a matrix of parameters is all that makes the last axis of a product."""
    if len(equation.terms) != 2 or len(equation.terms[1]) != 2:
        return False
    first, second = equation.terms
    if equation.result != (*first[:-1], *(x for x in second if x != first[-1])):
        return False
    rows, matrix = equation.operands
    return store.is_parameter(matrix) and not store.is_parameter(rows)
