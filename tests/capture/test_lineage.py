import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard.capture.lineage import Lineage


class Following(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.lineage = Lineage()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func.__name__ != "__get__":
            self.lineage.follow(func.__name__, args, out)
        return out


def followed(run):
    with Following() as following:
        return following.lineage, run()


def project():
    return nn.Linear(12, 12)


def test_queries_and_keys_of_the_same_rows():
    rows, q, k = torch.randn(2, 5, 12), project(), project()
    lineage, (queries, keys) = followed(lambda: (q(rows), k(rows)))
    assert lineage.same(queries, keys) is True


def test_queries_and_keys_of_different_rows():
    q, k, rows, memory = project(), project(), torch.randn(2, 5, 12), torch.randn(2, 5, 12)
    lineage, (queries, keys) = followed(lambda: (q(rows), k(memory)))
    assert lineage.same(queries, keys) is False


def test_nothing_is_known_of_what_was_not_projected():
    lineage, _ = followed(lambda: None)
    rows = torch.randn(2, 5, 12)
    assert lineage.same(rows, torch.randn(2, 5, 12)) is None
    assert lineage.same(rows, rows) is True
    assert lineage.same_in_scores(rows) is None


def test_one_projection_cut_in_parts_and_turned():
    both, rows = nn.Linear(12, 24), torch.randn(2, 5, 12)

    def run():
        queries, keys = both(rows).chunk(2, dim=-1)
        turned = queries * 0.5 + queries.flip(-1) * 0.1
        return turned.unflatten(-1, (3, 4)).transpose(1, 2), keys.view(2, 5, 3, 4).permute(
            0, 2, 1, 3
        )

    lineage, sides = followed(run)
    assert lineage.same(*sides) is True


def test_rows_that_are_viewed_twice_are_the_same_rows():
    q, k, rows = project(), project(), torch.randn(2, 5, 12)
    lineage, sides = followed(lambda: (q(rows.view(10, 12)), k(rows.view(10, 12))))
    assert lineage.same(*sides) is True


def test_what_is_projected_twice_comes_from_the_same_rows():
    q, k, more, rows = project(), project(), project(), torch.randn(2, 5, 12)
    lineage, sides = followed(lambda: (more(q(rows)), more(k(rows))))
    assert lineage.same(*sides) is True


def test_a_stream_that_looked_at_a_memory_is_not_that_memory():
    q, k, v, out = (project() for _ in range(4))
    rows, memory = torch.randn(2, 5, 12), torch.randn(2, 5, 12)

    def run():
        read = memory + out(memory)
        stream = rows
        for _ in range(2):
            weights = (q(stream) @ k(read).mT).softmax(-1)
            stream = stream + out(weights @ v(read))
        return q(stream), k(read)

    lineage, sides = followed(run)
    assert lineage.same(*sides) is False


def test_keys_from_a_cache_that_grows_are_still_of_the_same_rows():
    q, k = project(), project()

    def run():
        cache = torch.zeros(2, 0, 12)
        for _ in range(20):
            rows = torch.randn(2, 1, 12)
            cache = torch.cat([cache, k(rows)], dim=1)
        return q(rows), cache

    lineage, sides = followed(run)
    assert lineage.same(*sides) is True


def test_scores_know_their_two_sides_whatever_is_added():
    q, k, p = project(), project(), project()
    rows, memory, places = (torch.randn(2, 5, 12) for _ in range(3))
    lineage, (own, other) = followed(
        lambda: (
            (q(rows) @ k(rows).transpose(1, 2) + q(rows) @ p(places).transpose(1, 2)) / 3,
            q(rows) @ k(memory).transpose(1, 2),
        )
    )
    assert lineage.same_in_scores(own) is True
    assert lineage.same_in_scores(other) is False


def test_additive_scores_know_their_two_sides():
    w, u, v, rows, memory = project(), project(), nn.Linear(12, 1), *torch.randn(2, 2, 5, 12)

    def score(one, other):
        return v(torch.tanh(w(one)[:, :, None] + u(other)[:, None]))

    lineage, (own, other) = followed(lambda: (score(rows, rows), score(rows, memory)))
    assert lineage.same_in_scores(own) is True
    assert lineage.same_in_scores(other) is False


def test_nothing_is_kept_of_tensors_that_are_gone():
    project_, rows = project(), torch.randn(2, 5, 12)
    lineage, out = followed(lambda: project_(rows))
    assert len(lineage._marks) == 2
    del out
    assert len(lineage._marks) == 1


def test_rows_that_are_put_beside_others_have_grown():
    q, k, rows, cache = project(), project(), torch.randn(2, 1, 12), torch.zeros(2, 5, 12)

    def run():
        queries, keys = q(rows), k(rows)
        cache[:, 3:4] = keys
        longer = torch.cat([torch.randn(2, 4, 12), keys], dim=1)
        turned = torch.cat([keys[..., 6:], keys[..., :6]], dim=-1)
        return queries, longer, cache[:, :4], turned, queries @ longer.transpose(1, 2), k(longer)

    lineage, (queries, longer, kept, turned, scores, anew) = followed(run)
    assert [lineage.grown(x) for x in (longer, kept, scores)] == [True] * 3
    assert [lineage.grown(x) for x in (queries, turned, anew)] == [False] * 3
    assert lineage.same(queries, kept) is True
