import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from regard import RegardError
from regard.trace import AttentionMap, TokenList, Trace, build_translation_trace
from regard.viz import render_page


def random_weights(heads, queries, keys):
    return torch.rand(heads, queries, keys).softmax(-1)


def pieces(count):
    return [f"w{n}" for n in range(count)]


def attention_map(**changes):
    arguments = {"name": "a", "kind": "self", "queries": "text", "keys": "text"}
    return AttentionMap(**arguments | changes)


def test_translation_trace_holds_encoder_decoder_and_cross_maps_in_order():
    trace = build_translation_trace(
        pieces(7),
        pieces(5),
        encoder=[random_weights(3, 7, 7)] * 2,
        decoder=[random_weights(3, 5, 5)] * 2,
        cross=[random_weights(3, 5, 7)] * 2,
        gold=[(6, 4), (0, 1)],
    )
    assert [m.kind for m in trace.maps] == ["self"] * 2 + ["causal"] * 2 + ["cross"] * 2
    assert [m.name for m in trace.layers("cross")] == ["cross.0", "cross.1"]
    assert trace.layers("cross", "target")[0].shape == (3, 5, 7)
    assert trace.layers("cross", "source") == ()
    assert trace.maps[0].heads == (0, 1, 2)
    assert trace.gold == ((0, 1), (6, 4))


def test_rows_of_cross_attention_have_two_namings_with_decoder_input():
    trace = build_translation_trace(
        pieces(7),
        ["chat", "</s>"],
        decoder_input=["<s>", "chat"],
        decoder=[random_weights(3, 2, 2)],
        cross=[random_weights(3, 2, 7)],
    )
    decoder, cross = trace.maps
    assert (decoder.queries, decoder.keys, decoder.query_inputs) == (*["decoder_input"] * 2, None)
    assert (cross.queries, cross.query_inputs) == ("target", "decoder_input")
    assert trace.row_tokens(cross).pieces == ("chat", "</s>")
    assert trace.row_tokens(cross, "input").pieces == ("<s>", "chat")
    assert trace.row_tokens(decoder, "output").pieces == ("<s>", "chat")


def test_unknown_naming_of_rows_is_refused(unchecked):
    trace = build_translation_trace(["a"], ["b"], cross=[random_weights(1, 1, 1)])
    with pytest.raises(RegardError, match="rows must be 'output' or 'input', but it is 'both'"):
        trace.row_tokens(trace.maps[0], "both")


def test_decoder_input_of_another_length_is_refused():
    with pytest.raises(RegardError, match="cross.0 has 5 queries, but there are 3 decoder_input"):
        build_translation_trace(
            pieces(7), pieces(5), decoder_input=pieces(3), cross=[random_weights(3, 5, 7)]
        )


@pytest.mark.parametrize("name", [3, ["target"], {}, b"target"])
@pytest.mark.parametrize("axis", ["queries", "keys", "query_inputs"])
def test_list_name_that_is_no_string_is_refused(unchecked, axis, name):
    with pytest.raises(RegardError, match=f"{axis} of a must be the name of a token list"):
        attention_map(weights=np.ones((1, 2, 2)), **{axis: name})


@pytest.mark.parametrize(
    "source, message",
    [
        (6, r"cross.0 has 7 keys, but there are 6 source tokens: .* \(BOS, EOS\) missing"),
        (8, "is a start or end token .* in the list, but not in the model's input"),
        (8, "or the last token of a generation, in the list, but not in the model's input"),
        (3, "7 keys, but there are 3 source tokens: was the input padded"),
        (21, "21 source tokens: does the list have padding, or more than one item"),
    ],
)
def test_token_list_of_wrong_length_is_refused_with_a_likely_reason(source, message):
    with pytest.raises(RegardError, match=message):
        build_translation_trace(pieces(source), pieces(5), cross=[random_weights(3, 5, 7)])


def test_wrong_length_error_names_the_axis():
    with pytest.raises(RegardError, match="cross.0 has 5 queries, but there are 9 target tokens"):
        build_translation_trace(pieces(7), pieces(9), cross=[random_weights(3, 5, 7)])


def test_batch_of_weights_is_refused():
    with pytest.raises(RegardError, match=r"weights\[0\] would be the first item of a batch"):
        build_translation_trace(pieces(7), pieces(5), cross=[random_weights(3, 5, 7)[None]])


def test_batch_of_tokens_is_refused(unchecked):
    with pytest.raises(RegardError, match="one batch item at a time"):
        TokenList((["a", "b"], ["c", "d"]))


def test_one_string_instead_of_a_list_is_refused(unchecked):
    with pytest.raises(RegardError, match="must be a list of strings, but it is 'abc'"):
        TokenList("abc")


def test_gold_link_beyond_the_words_is_refused():
    source = TokenList(("a", "b", "c", "</s>"), words=(0, 0, 1, None))
    build_translation_trace(source, ["x"], gold=[(1, 0)])
    with pytest.raises(RegardError, match="within 2 and 1 words, but one is \\(2, 0\\)"):
        build_translation_trace(source, ["x"], gold=[(2, 0)])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"words": (0,)}, "words must have one item per piece, 2, not 1"),
        ({"log_probs": (0.0,) * 3}, "log_probs must have one item per piece"),
        ({"padding": (2,)}, "positions from 0 to 1, but one is 2"),
        ({"words": (0, "x")}, "words must be integers from 0 upwards or None, but one is 'x'"),
        ({"words": (0, True)}, "words must be integers from 0 upwards or None, but one is True"),
        ({"words": (-5, 1)}, "words must be integers from 0 upwards"),
        ({"words": (0, 2.5)}, "words must be integers from 0 upwards"),
        ({"special": (0.5,)}, "positions from 0 to 1, but one is 0.5"),
        ({"padding": ("0",)}, "positions from 0 to 1, but one is '0'"),
        ({"log_probs": (None, {})}, "log_probs must be numbers or None"),
        ({"log_probs": (None, True)}, "log_probs must be numbers or None"),
    ],
)
def test_invalid_annotation_of_pieces_is_refused(unchecked, changes, message):
    with pytest.raises(RegardError, match=message):
        TokenList(("a", "b"), **changes)


def test_numpy_numbers_annotate_pieces_as_well(unchecked):
    tokens = TokenList(("a", "b"), words=(np.int64(0), 1), log_probs=(np.float32(-1), None))
    assert tokens.num_words == 2


def test_non_padding_lists_positions_that_are_not_padding():
    assert TokenList(tuple("abcd"), padding=(0, 3)).non_padding.tolist() == [1, 2]


def test_map_without_weights_or_summary_is_refused():
    with pytest.raises(RegardError, match="a must have either weights or a summary"):
        attention_map()


def test_map_with_weights_and_summary_is_refused(summarized_trace):
    summary = summarized_trace.maps[0].summary
    with pytest.raises(RegardError, match="a must have either weights or a summary"):
        attention_map(weights=np.ones((1, 2, 2)), summary=summary)


def test_unknown_kind_is_refused(unchecked):
    with pytest.raises(RegardError, match="kind must be one of self, causal, cross"):
        attention_map(kind="across", weights=np.ones((1, 2, 2)))


def test_value_norms_of_wrong_shape_are_refused():
    with pytest.raises(RegardError, match=r"value_norms of a must have shape \(3, 7\)"):
        attention_map(weights=np.ones((3, 5, 7)), value_norms=np.ones((3, 5)))


@pytest.mark.parametrize("heads", [(0, 1), ("<b>",), (float("nan"),), ({},), (-1,)])
def test_heads_that_are_not_one_index_per_head_are_refused(unchecked, heads):
    with pytest.raises(RegardError, match="heads of a must be 1 head indices"):
        attention_map(weights=np.ones((1, 2, 2)), heads=heads)


def test_map_between_unknown_token_lists_is_refused():
    unknown = attention_map(keys="words", weights=np.ones((1, 2, 2)))
    with pytest.raises(RegardError, match="keys of a are 'words', but the token lists are 'text'"):
        Trace(tokens={"text": TokenList(("a", "b"))}, maps=(unknown,))
    unknown = attention_map(query_inputs="words", weights=np.ones((1, 2, 2)))
    with pytest.raises(RegardError, match="query_inputs of a are 'words', but the token lists"):
        Trace(tokens={"text": TokenList(("a", "b"))}, maps=(unknown,))


@pytest.mark.parametrize(
    "part, shape, message",
    [
        ("received", (), "received of a must have 2 axes"),
        ("tiles", (0,), "tiles of a must have 3 axes"),
        ("tiles", (2, 0, 5), "tiles of a must have shape"),
        ("tiles", (2, 5, 5), "tiles of a must have shape"),
        ("tiles", (2, 4, 6), "tiles of a must have shape"),
        ("tiles", (1, 4, 5), "tiles of a must have shape"),
        ("entropy", (2, 3), r"entropy of a must have shape \(2, 4\)"),
        ("top_weights", (2, 4, 3), r"top_weights of a must have shape \(2, 4, 2\)"),
    ],
)
def test_summary_of_wrong_shape_is_refused(summarized_trace, part, shape, message):
    summary = replace(summarized_trace.maps[0].summary, **{part: np.zeros(shape)})
    with pytest.raises(RegardError, match=message):
        attention_map(summary=summary)


def test_summary_that_names_missing_keys_is_refused(summarized_trace):
    summary = summarized_trace.maps[0].summary
    with pytest.raises(RegardError, match="top_keys of a must be from 0 to 4, but one is 5"):
        attention_map(summary=replace(summary, top_keys=np.full_like(summary.top_keys, 5)))


def test_plot_and_save_page_are_those_of_viz(tmp_path):
    weights = [np.full((2, 3, 4), 0.25)] * 2
    trace = build_translation_trace("abcd", "xyz", cross=weights)
    axes = trace.plot(kind="cross", layer=1, head=1).axes[0]
    assert np.array_equal(axes.images[0].get_array(), weights[1][1])
    trace.save_page(tmp_path / "look.html", kind="cross", layer=1, head=1)
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert page == render_page(trace, "cross", 1, 1)


def test_importing_the_trace_package_does_not_import_viz():
    code = "import sys, regard.trace; print('regard.viz' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_trace_is_represented_in_one_short_line():
    cross = [random_weights(3, 5, 7)] * 2
    trace = build_translation_trace(pieces(7), pieces(5), cross=cross, title="a → b", model="run")
    assert repr(trace) == "<Trace 'a → b' of run: 2 cross maps; tokens: 7 source, 5 target>"


@pytest.mark.usefixtures("unchecked")
def test_layers_of_an_unknown_kind_are_refused():
    """They would be none at all, as of a trace without such attention."""
    trace = build_translation_trace(["a"], ["x"], encoder=[[[[1.0]]]])
    assert len(trace.layers("self")) == 1 and trace.layers("cross") == ()
    with pytest.raises(RegardError, match="no kind of attention is called 'encoder'. Choose from"):
        trace.layers("encoder")
