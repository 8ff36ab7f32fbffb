"""Hugging Face models traced in one call: the weights of eager mode, the tokenizer's tokens."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from regard import RegardError, trace_hf, watch

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

VOCABULARY = ["<pad>", "<s>", "</s>", "<unk>", "▁the", "▁cat", "▁look", "ed", "▁le", "▁chat", "▁a"]
VOCABULARY += ["▁vu", "▁"]
BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
BERT |= {"intermediate_size": 16, "max_position_embeddings": 8}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 8}
BART = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 16}
BART |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
BART |= {"encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
SPECIAL_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


@pytest.fixture
def tokenizer():
    """A tokenizer of SentencePiece's kind that ends each text with </s>."""
    pieces = Tokenizer(models.Unigram([(p, -float(n)) for n, p in enumerate(VOCABULARY)], unk_id=3))
    pieces.pre_tokenizer, pieces.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    pieces.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 2)]
    )
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return hf.PreTrainedTokenizerFast(tokenizer_object=pieces, **special)


def build(config, sizes, model=hf.AutoModel):
    torch.manual_seed(0)
    settings = config(vocab_size=len(VOCABULARY), **SPECIAL_IDS, **sizes)
    return model.from_config(settings, attn_implementation="sdpa").eval()


def eager_weights(model, name, **inputs):
    """Return the weights of one batch item that the model itself returns in eager mode."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return [w[0].numpy() for w in model(**inputs, output_attentions=True)[name]]


def assert_maps_equal(maps, expected):
    assert len(maps) == len(expected)
    for m, weights in zip(maps, expected, strict=True):
        np.testing.assert_allclose(m.weights, weights, atol=1e-6)


@pytest.mark.parametrize("config, sizes", [(hf.BertConfig, BERT), (hf.GPT2Config, GPT2)])
def test_model_of_one_text_is_traced_with_its_tokens(config, sizes, tokenizer):
    model = build(config, sizes)
    trace = trace_hf(model, tokenizer, "the cat looked")
    tokens = trace.tokens["text"]
    assert tokens.pieces == ("▁the", "▁cat", "▁look", "ed", "</s>")
    assert tokens.words == (0, 1, 2, 2, None) and tokens.special == (4,)
    assert (trace.title, trace.model) == ("the cat looked", type(model).__name__)
    inputs = tokenizer("the cat looked", return_tensors="pt")
    assert_maps_equal(trace.maps, eager_weights(model, "attentions", **inputs))


def test_encoder_decoder_is_forced_to_the_target(tokenizer):
    model = build(hf.BartConfig, BART | {"decoder_start_token_id": 2}, hf.AutoModelForSeq2SeqLM)
    trace = trace_hf(model, tokenizer, "the cat looked", "le chat a vu")
    assert trace.title == "the cat looked → le chat a vu"
    expected = eager_weights(
        model,
        "cross_attentions",
        **tokenizer("the cat looked", return_tensors="pt"),
        decoder_input_ids=torch.tensor([[2, 8, 9, 10, 11]]),
    )
    cross = trace.layers("cross", "target")
    assert_maps_equal(cross, expected)
    assert trace.row_tokens(cross[0]).pieces == ("▁le", "▁chat", "▁a", "▁vu", "</s>")
    assert trace.row_tokens(cross[0], "input").pieces == ("</s>", "▁le", "▁chat", "▁a", "▁vu")


def test_errors_take_one_line(tokenizer):
    bert, bart = build(hf.BertConfig, BERT), build(hf.BartConfig, BART)
    for arguments, message in [
        ((bert, tokenizer, " "), "there is no text to trace in ' '"),
        (
            (bert, tokenizer, "the cat " * 5 + "the"),
            "the text has 12 tokens, but the model has 8 positions",
        ),
        ((bert, tokenizer, "the", "le"), "target is for encoder-decoder models"),
        ((bart, tokenizer, "the cat"), "BartModel cannot generate text: load it with AutoModelFor"),
        (
            (torch.nn.Linear(2, 2), tokenizer, "the"),
            "needs a model and a tokenizer of transformers",
        ),
        ((bert, "bert-base", "the"), "needs a model and a tokenizer of transformers"),
    ]:
        with pytest.raises(RegardError, match=message) as caught:
            trace_hf(*arguments)
        assert "\n" not in str(caught.value)


def test_capture_takes_tokens_from_inputs_and_tokenizer(tokenizer):
    model = build(hf.BertConfig, BERT)
    inputs = tokenizer(["the cat looked", "the cat"], return_tensors="pt", padding=True)
    with torch.no_grad(), watch(model) as capture:
        model(**inputs)
    for given in (inputs, dict(inputs)):  # a plain dict has no words
        tokens = capture.trace(tokenizer=tokenizer, inputs=given, batch_index=1).tokens["text"]
        assert tokens.pieces == ("▁the", "▁cat", "</s>", "<pad>", "<pad>")
        assert tokens.words == (0, 1, None, None, None)
        assert tokens.special == (2, 3, 4) and tokens.padding == (3, 4)
    assert capture.trace().tokens["text"].pieces == ("0", "1", "2", "3", "4")


def test_capture_takes_ids_alone(tokenizer):
    model = build(hf.GPT2Config, GPT2)
    ids = torch.tensor([[4, 5, 6, 7]])
    with torch.no_grad(), watch(model) as capture:
        model(ids)
    for given in (ids, {"input_ids": ids}, {"input_ids": [[4, 5, 6, 7]]}):
        trace = capture.trace(tokenizer=tokenizer, inputs=given)
        assert trace.tokens["text"].pieces == ("▁the", "▁cat", "▁look", "ed")


def test_tokenizer_and_inputs_go_together(tokenizer):
    model = build(hf.BertConfig, BERT)
    inputs = tokenizer("the cat", return_tensors="pt")
    with torch.no_grad(), watch(model) as capture:
        model(**inputs)
    for arguments, message in [
        ({"tokenizer": tokenizer}, "tokenizer and inputs must be given together"),
        ({"inputs": inputs}, "tokenizer and inputs must be given together"),
        ({"tokenizer": tokenizer, "inputs": inputs, "source": ["a"]}, "give either tokens, or"),
        ({"tokenizer": tokenizer, "inputs": {}}, "inputs must have input_ids"),
        ({"tokenizer": tokenizer, "inputs": inputs, "batch_index": 3}, "batch_index must be from"),
    ]:
        with pytest.raises(RegardError, match=message):
            capture.trace(**arguments)


def test_encoder_decoder_writes_what_it_generates(tokenizer):
    model = build(hf.BartConfig, BART | {"decoder_start_token_id": 2}, hf.AutoModelForSeq2SeqLM)
    trace = trace_hf(model, tokenizer, "the cat", max_new_tokens=4)
    output = model.generate(
        **tokenizer("the cat", return_tensors="pt"), max_new_tokens=4, do_sample=False, num_beams=1
    )
    pieces = tuple(tokenizer.convert_ids_to_tokens(output[0]))
    assert trace.tokens["target"].pieces == pieces[1:]
    assert trace.tokens["decoder_input"].pieces == pieces[:-1]
    assert trace.title == f"the cat → {tokenizer.decode(output[0], skip_special_tokens=True)}"


def test_capture_takes_the_target_from_labels(tokenizer):
    model = build(hf.BartConfig, BART | {"decoder_start_token_id": 2}, hf.AutoModelForSeq2SeqLM)
    inputs = tokenizer("the cat", return_tensors="pt")
    labels = torch.tensor([[8, 9, 2, -100]])
    with torch.no_grad(), watch(model) as capture:
        model(**inputs, labels=labels)
    trace = capture.trace(tokenizer=tokenizer, inputs={**inputs, "labels": labels})
    written, read = trace.tokens["target"], trace.tokens["decoder_input"]
    assert written.pieces == ("▁le", "▁chat", "</s>", "<pad>") and written.padding == (3,)
    assert read.pieces == ("…", "▁le", "▁chat", "</s>")


@pytest.mark.parametrize("text", [["the", "cat"], 7])
def test_text_that_is_no_string_is_a_type_error(tokenizer, unchecked, text):
    with pytest.raises(TypeError, match="text must be a string, but it is of type"):
        trace_hf(build(hf.BertConfig, BERT), tokenizer, text)


def test_generation_ends_at_the_models_positions(tokenizer):
    sizes = BART | {"decoder_start_token_id": 2, "forced_eos_token_id": None}
    model = build(hf.MarianConfig, sizes, hf.AutoModelForSeq2SeqLM)
    with torch.no_grad():
        model.final_logits_bias[..., 2] = -1000.0  # the model never ends by itself
    trace = trace_hf(model, tokenizer, "the cat")
    assert len(trace.tokens["decoder_input"]) == model.config.max_position_embeddings - 1


def test_ids_that_the_tokenizer_does_not_have_are_shown_as_numbers(tokenizer):
    """The embeddings of a model may have more rows than its tokenizer has tokens."""
    larger = hf.GPT2Config(vocab_size=64, **SPECIAL_IDS, **GPT2)
    model = hf.AutoModel.from_config(larger).eval()
    inputs = {"input_ids": torch.tensor([[4, 50, 5]])}
    with watch(model) as capture:
        model(**inputs)
    trace = capture.trace(tokenizer=tokenizer, inputs=inputs)
    assert trace.tokens["text"].pieces == ("▁the", "<50>", "▁cat")
