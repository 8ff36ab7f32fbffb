import gc
import weakref

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard.capture.functions import FunctionCall
from regard.capture.lineage import Lineage


class LineageMode(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.lineage = Lineage()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func.__name__ != "__get__":
            self.lineage.update(FunctionCall(func, func.__name__, args, {}, out))
        return out


def run_with_lineage(run):
    with LineageMode() as mode:
        return mode.lineage, run()


def projection():
    return nn.Linear(12, 12)


def test_projections_of_the_same_rows_have_the_same_rows():
    rows, q, k = torch.randn(2, 5, 12), projection(), projection()
    lineage, (queries, keys) = run_with_lineage(lambda: (q(rows), k(rows)))
    assert lineage.same_rows(queries, keys) is True


def test_projections_of_different_rows_have_different_rows():
    q, k, rows, memory = projection(), projection(), torch.randn(2, 5, 12), torch.randn(2, 5, 12)
    lineage, (queries, keys) = run_with_lineage(lambda: (q(rows), k(memory)))
    assert lineage.same_rows(queries, keys) is False


def test_keys_of_rows_after_a_memory_have_the_same_rows_as_queries():
    rows, memory, q, k = torch.randn(2, 5, 12), torch.randn(2, 4, 12), projection(), projection()
    lineage, (queries, keys) = run_with_lineage(
        lambda: (q(rows), k(torch.cat([memory, rows], dim=1)))
    )
    assert lineage.same_rows(queries, keys) is True


def test_lineage_of_unprojected_rows_is_unknown():
    lineage, _ = run_with_lineage(lambda: None)
    rows = torch.randn(2, 5, 12)
    assert lineage.same_rows(rows, torch.randn(2, 5, 12)) is None
    assert lineage.same_rows(rows, rows) is True
    assert lineage.same_rows_in_scores(rows) is None


def test_chunks_of_a_joint_projection_have_the_same_rows():
    joint, rows = nn.Linear(12, 24), torch.randn(2, 5, 12)

    def run():
        queries, keys = joint(rows).chunk(2, dim=-1)
        rotated = queries * 0.5 + queries.flip(-1) * 0.1
        return (
            rotated.unflatten(-1, (3, 4)).transpose(1, 2),
            keys.view(2, 5, 3, 4).permute(0, 2, 1, 3),
        )

    lineage, sides = run_with_lineage(run)
    assert lineage.same_rows(*sides) is True


def test_views_of_rows_are_the_same_rows():
    q, k, rows = projection(), projection(), torch.randn(2, 5, 12)
    lineage, sides = run_with_lineage(lambda: (q(rows.view(10, 12)), k(rows.view(10, 12))))
    assert lineage.same_rows(*sides) is True


def test_double_projections_have_the_same_rows():
    q, k, second, rows = projection(), projection(), projection(), torch.randn(2, 5, 12)
    lineage, sides = run_with_lineage(lambda: (second(q(rows)), second(k(rows))))
    assert lineage.same_rows(*sides) is True


def test_residual_stream_that_attended_to_a_memory_is_not_that_memory():
    q, k, v, out = (projection() for _ in range(4))
    rows, memory = torch.randn(2, 5, 12), torch.randn(2, 5, 12)

    def run():
        encoded = memory + out(memory)
        stream = rows
        for _ in range(2):
            weights = (q(stream) @ k(encoded).mT).softmax(-1)
            stream = stream + out(weights @ v(encoded))
        return q(stream), k(encoded)

    lineage, sides = run_with_lineage(run)
    assert lineage.same_rows(*sides) is False


def test_growing_cache_still_has_the_same_rows():
    q, k = projection(), projection()

    def run():
        cache = torch.zeros(2, 0, 12)
        for _ in range(20):
            rows = torch.randn(2, 1, 12)
            cache = torch.cat([cache, k(rows)], dim=1)
        return q(rows), cache

    lineage, sides = run_with_lineage(run)
    assert lineage.same_rows(*sides) is True


def test_scores_remember_both_sides_when_more_is_added():
    q, k, p = projection(), projection(), projection()
    rows, memory, positions = (torch.randn(2, 5, 12) for _ in range(3))
    lineage, (self_scores, cross_scores) = run_with_lineage(
        lambda: (
            (q(rows) @ k(rows).transpose(1, 2) + q(rows) @ p(positions).transpose(1, 2)) / 3,
            q(rows) @ k(memory).transpose(1, 2),
        )
    )
    assert lineage.same_rows_in_scores(self_scores) is True
    assert lineage.same_rows_in_scores(cross_scores) is False


def test_additive_scores_remember_both_sides():
    w, u, v = projection(), projection(), nn.Linear(12, 1)
    rows, memory = torch.randn(2, 2, 5, 12)

    def score(queries, keys):
        return v(torch.tanh(w(queries)[:, :, None] + u(keys)[:, None]))

    lineage, scores = run_with_lineage(lambda: (score(rows, rows), score(rows, memory)))
    assert [lineage.same_rows_in_scores(x) for x in scores] == [True, False]


def test_lineage_keeps_no_tensors_alive():
    project, rows = projection(), torch.randn(2, 5, 12)
    lineage, out = run_with_lineage(lambda: project(rows))
    projected = weakref.ref(out)
    assert lineage.origins(out)
    del out
    gc.collect()
    assert projected() is None


def test_appended_rows_come_from_a_cache():
    q, k, rows, cache = projection(), projection(), torch.randn(2, 1, 12), torch.zeros(2, 5, 12)

    def run():
        queries, keys = q(rows), k(rows)
        cache[:, 3:4] = keys
        longer = torch.cat([torch.randn(2, 4, 12), keys], dim=1)
        rotated = torch.cat([keys[..., 6:], keys[..., :6]], dim=-1)
        scores = queries @ longer.transpose(1, 2)
        return queries, longer, cache[:, :4], rotated, scores, k(longer)

    lineage, results = run_with_lineage(run)
    queries, longer, cached, rotated, scores, projected = results
    assert [lineage.from_cache(x) for x in (longer, cached, scores)] == [True] * 3
    assert [lineage.from_cache(x) for x in (queries, rotated, projected)] == [False] * 3
    assert lineage.same_rows(queries, cached) is True
