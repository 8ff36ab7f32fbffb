"""The `Capture` object: table, lookup, selection, messages, and the kind of each call."""

import pytest
import torch
from torch import nn

from regard import RegardError, edit, load_trace, watch
from regard.attention import MultiHeadAttention
from regard.capture.calls import MaterializedWeights
from regard.capture.records import classify


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3)

    def forward(self, rows, memory):
        return self.second(self.first(rows), memory)


def run(model):
    model(torch.randn(2, 5, 12), torch.randn(2, 7, 12))


@pytest.fixture
def model():
    return Pair()


@pytest.fixture
def capture(model):
    with watch(model) as capture:
        run(model)
    return capture


def test_capture_prints_as_a_table(capture):
    header, first, second = (" ".join(line.split()) for line in str(capture).splitlines())
    assert header == "module call site kind heads queries × keys calls storage"
    line = capture[0].call_site
    assert first == f"first {line} self 3 5 × 5 1 all weights"
    assert second == f"second {line} cross 3 5 × 7 1 all weights"


def test_repr_counts_calls_and_modules(capture):
    assert repr(capture) == "<Capture of Pair: 2 attention calls in 2 modules>"


def test_repeated_calls_share_a_row_of_the_table(model):
    with watch(model) as capture:
        for _ in range(3):
            run(model)
    assert [x.call for x in capture] == [0, 0, 1, 1, 2, 2]
    rows = str(capture).splitlines()
    assert len(rows) == 3 and rows[2].endswith("5 × 7           3      all weights")


def test_weights_are_found_by_module_name(capture):
    assert capture.weights("second").shape == (2, 3, 5, 7)
    assert torch.equal(capture.weights("second", kind="cross"), capture[1].weights)


def test_unknown_module_or_call_is_refused(capture):
    with pytest.raises(RegardError, match="no captured module is called 'secnd'. Did you mean"):
        capture.weights("secnd")
    with pytest.raises(RegardError, match="first was captured, but has no call 4"):
        capture.weights("first", call=4)


def test_modules_selects_by_pattern(model):
    with watch(model, modules="sec*") as capture:
        run(model)
    assert capture.module_names == ("second",)
    assert str(capture).endswith("not kept: 1 module outside modules='sec*'")


def test_modules_without_attention_capture_nothing(model):
    with watch(model, modules="first.query") as capture:
        run(model)
    with pytest.raises(RegardError, match="modules='first.query' excludes first, second"):
        capture.trace()


def test_heads_selects_by_index(model):
    with watch(model, heads=[2]) as capture:
        run(model)
    assert capture[0].weights.shape == (2, 1, 5, 5)
    assert "heads 2 of 3, all weights" in str(capture)
    assert capture.trace().maps[0].heads == (2,)


def test_weights_of_a_summarized_call_are_refused(model):
    with watch(model, keep="summary") as capture:
        run(model)
    with pytest.raises(RegardError, match="the weights of first were summarized; keep='all'"):
        capture.weights("first")
    assert "top 8 keys and tiles" in str(capture)


def test_empty_capture_explains_itself(model):
    with watch(model) as capture:
        pass
    message = "nothing was captured: Pair was not called inside `with watch"
    assert message in str(capture)
    methods = (capture.trace, capture.check, lambda: capture.save("x"), lambda: capture.weights(""))
    for method in methods:
        with pytest.raises(RegardError, match=message):
            method()


def test_error_for_a_model_without_attention_lists_what_is_recognised():
    model = nn.Linear(3, 3)
    with watch(model) as capture:
        model(torch.randn(2, 3))
    with pytest.raises(RegardError, match="no attention was found in Linear; recognised .*softmax"):
        capture.trace()


def test_capture_saves_a_trace(capture, tmp_path):
    capture.save(tmp_path / "a.json.gz", list("abcdefg"), list("vwxyz"))
    trace = load_trace(tmp_path / "a.json.gz")
    assert trace.tokens["target"].pieces == tuple("vwxyz")
    assert [x.kind for x in trace.maps] == ["self", "cross"]


@pytest.mark.parametrize(
    "queries, keys, causal, same_rows, from_cache, kind",
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
def test_kind_follows_from_lineage_mask_and_shape(
    queries, keys, causal, same_rows, from_cache, kind
):
    weights = torch.ones(1, 1, queries, keys)
    call = MaterializedWeights(weights.tril(keys - queries) if causal else weights)
    assert classify(call, same_rows, from_cache) == kind


def test_record_at_a_prompt_is_one_short_line(capture):
    for record in capture:
        line = repr(record)
        assert repr(record.name) in line and record.kind in line and len(line) < 100


@pytest.mark.parametrize("context, name", [(watch, "capture"), (edit, "edit")])
def test_context_that_was_not_entered_names_its_usage(model, context, name):
    not_entered, usage = context(model), f"`with regard.{context.__name__}(model) as {name}:`"
    assert usage in repr(not_entered)
    with pytest.raises(RegardError, match="without 'trace'") as attribute:
        _ = not_entered.trace
    with pytest.raises(RegardError, match="has no items") as item:
        _ = not_entered["*"]
    assert usage in str(attribute.value) and usage in str(item.value)
    assert not hasattr(not_entered, "_repr_html_") and not hasattr(not_entered, "shape")
