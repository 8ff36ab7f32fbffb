import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from regard import RegardError, load_trace, watch
from regard.attention import KVCache, MultiHeadAttention
from regard.capture.calls.base import Whole
from regard.capture.capture import kind_of


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3)

    def forward(self, rows, memory):
        return self.second(self.first(rows), memory)


@pytest.fixture
def model():
    return Pair()


@pytest.fixture
def seen(model):
    with watch(model) as seen:
        model(torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    return seen


def test_what_was_seen_prints_as_a_table(seen):
    head, first, second = str(seen).splitlines()
    assert " ".join(head.split()) == "site place kind heads queries × keys calls kept"
    place = seen[0].place
    assert " ".join(first.split()) == f"first {place} self 3 5 × 5 1 whole weights"
    assert " ".join(second.split()) == f"second {place} cross 3 5 × 7 1 whole weights"
    assert repr(seen) == "<Capture of Pair: 2 attention calls in 2 modules>"


def test_calls_of_one_site_share_a_line(model):
    with watch(model) as seen:
        for _ in range(3):
            model(torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    assert [look.call for look in seen] == [0, 0, 1, 1, 2, 2]
    assert len(str(seen).splitlines()) == 3
    assert "5 × 7           3      whole weights" in str(seen)


def test_weights_are_found_by_name(seen):
    assert seen.weights("second").shape == (2, 3, 5, 7)
    assert seen.weights("second") is not None and len(seen) == 2
    with pytest.raises(RegardError, match="no module that looked is called 'secnd'. Did you mean"):
        seen.weights("secnd")
    with pytest.raises(RegardError, match="first looked, but not in a call 4"):
        seen.weights("first", call=4)


def test_only_some_modules(model):
    with watch(model, modules="sec*") as seen:
        model(torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    assert seen.module_names == ("second",)
    assert str(seen).endswith("not kept: 1 modules outside modules='sec*'")


def test_only_some_heads(model):
    with watch(model, heads=[2]) as seen:
        model(torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    assert seen[0].weights.shape == (2, 1, 5, 5)
    assert "heads 2 of 3, whole weights" in str(seen)
    assert seen.trace().maps[0].heads == (2,)


def test_reduced_weights_are_not_whole(model):
    with watch(model, keep="reduced") as seen:
        model(torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    with pytest.raises(RegardError, match="the weights of first were reduced, not kept whole"):
        seen.weights("first")
    assert "reduced to top 8 and tiles" in str(seen)


def test_leaving_before_any_call_says_so(model):
    with watch(model) as seen:
        pass
    sentence = "nothing was seen: Pair was not called inside `with watch"
    assert sentence in str(seen)
    for ask in (seen.trace, seen.check, lambda: seen.save("x"), lambda: seen.weights("first")):
        with pytest.raises(RegardError, match=sentence):
            ask()


def test_what_goes_wrong_in_looking_does_not_hurt_the_model(model, monkeypatch):
    def broken(*args):
        raise RuntimeError("not for this kind of tensor\nand more")

    from regard.capture import mode

    monkeypatch.setattr(mode, "asked_of", broken)
    rows, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    with watch(model) as seen:
        watched = model(rows, memory)
    assert torch.equal(watched, model(rows, memory))
    lines = str(seen).splitlines()
    assert len(lines) == 2 and lines[0].startswith("not seen: first (multihead.py:")
    assert lines[0].endswith("not for this kind of tensor")
    with pytest.raises(RegardError, match="not seen: first"):
        seen.trace()


def test_what_torch_func_transforms_is_left_alone_and_told_of(model):
    rows, memory = torch.randn(3, 2, 5, 12), torch.randn(3, 2, 7, 12)

    def slopes():
        gradient = torch.func.grad(lambda *given: model(*given).square().sum())
        return torch.func.vmap(gradient)(rows, memory)

    with watch(model) as seen:
        watched = slopes()
    assert torch.equal(watched, slopes())
    lines = str(seen).splitlines()
    assert len(lines) == 2 and all("a plain pass can be watched" in line for line in lines)


def test_a_model_without_attention_is_told_what_was_looked_for():
    model = nn.Linear(3, 3)
    with watch(model) as seen:
        model(torch.randn(2, 3))
    with pytest.raises(RegardError, match="no attention was found in Linear; looked for .*softmax"):
        seen.trace()


def test_only_modules_without_attention_keep_nothing(model):
    with watch(model, modules="first.query") as seen:
        model(torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    with pytest.raises(RegardError, match="modules='first.query' leaves out first, second"):
        seen.trace()


def test_what_was_seen_is_saved(seen, tmp_path):
    seen.save(tmp_path / "a.json.gz", list("abcdefg"), list("vwxyz"))
    trace = load_trace(tmp_path / "a.json.gz")
    assert trace.tokens["target"].pieces == tuple("vwxyz")
    assert [look.kind for look in trace.maps] == ["self", "cross"]


@pytest.mark.parametrize(
    "queries, keys, stairs, same, grown, kind",
    [
        (5, 5, False, True, False, "self"),
        (5, 5, True, True, False, "causal"),
        (1, 6, False, True, True, "causal"),
        (1, 6, False, True, False, "cross"),
        (5, 5, False, False, False, "cross"),
        (5, 7, False, None, False, "cross"),
        (5, 5, False, None, False, "self"),
        (2, 5, True, None, False, "causal"),
    ],
)
def test_kinds(queries, keys, stairs, same, grown, kind):
    weights = torch.ones(1, 1, queries, keys)
    asked = Whole(weights.tril(keys - queries) if stairs else weights)
    assert kind_of(asked, same, grown) == kind


def test_what_served_to_know_a_next_step_is_let_go(seen):
    assert all(look._sample is None and look._call is None for look in seen)


class Latent(nn.Module):
    """Causal attention whose cache keeps narrow rows, of which keys and values are made anew."""

    def __init__(self):
        super().__init__()
        self.query, self.down, self.up = nn.Linear(12, 12), nn.Linear(12, 5), nn.Linear(5, 24)

    def forward(self, rows, kept=None):
        narrow = self.down(rows)
        kept = narrow if kept is None else torch.cat([kept, narrow], dim=1)
        keys, values = self.up(kept).chunk(2, dim=-1)
        queries, keys, values = (
            x.unflatten(-1, (3, 4)).transpose(1, 2) for x in (self.query(rows), keys, values)
        )
        context = scaled_dot_product_attention(queries, keys, values, is_causal=rows.shape[1] > 1)
        return context, kept


class Again(nn.Module):
    """One layer that is passed twice, with a cache for each time."""

    def __init__(self):
        super().__init__()
        self.layer = MultiHeadAttention(12, 3)

    def forward(self, rows, caches=None):
        grown = []
        for cache in caches or (KVCache(), KVCache()):
            rows, cache = self.layer.step(rows, cache)
            grown.append(cache)
        return rows, grown


@pytest.mark.parametrize(("model", "looks"), [(Latent, 1), (Again, 2)])
@torch.no_grad()
def test_steps_are_known_by_the_keys_they_go_on_from(model, looks):
    model, rows = model(), torch.randn(2, 7, 12) * 3
    with watch(model) as seen:
        _, kept = model(rows[:, :4])
        for n in range(4, 7):
            _, kept = model(rows[:, n : n + 1], kept)
    with watch(model) as whole:
        model(rows)
    assert [look.steps for look in seen] == [4] * looks
    assert [look.kind for look in seen] == [look.kind for look in whole] == ["causal"] * looks
    for look, expected in zip(seen, whole, strict=True):
        torch.testing.assert_close(look.weights, expected.weights)
