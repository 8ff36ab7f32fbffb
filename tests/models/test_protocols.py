"""Contracts of models."""

import inspect

import pytest
import torch

from regard.models import (
    AttentionWeights,
    Decoder,
    DecoderModel,
    DecoderState,
    Embedding,
    EncodedSource,
    Encoder,
    LanguageModel,
    RecurrentModel,
    Seq2SeqModel,
    Transformer,
)
from regard.positions import Learned

SOURCE, LENGTHS = torch.tensor([[4, 5], [6, 0]]), torch.tensor([2, 1])


def make_models():
    embeddings = [Embedding(9, 12)] * 2
    return [Transformer(*embeddings, Encoder([]), Decoder([])), RecurrentModel(*embeddings)]


def methods_of(contract):
    members = inspect.getmembers(contract, inspect.isfunction)
    return {name for name, _ in members if name in vars(contract) and name[0] != "_"}


@pytest.mark.parametrize("model", [Transformer, RecurrentModel])
def test_seq2seq_models_keep_the_parameter_names_of_the_contract(model):
    assert methods_of(Seq2SeqModel) >= {"encode", "decode", "init_state", "step", "logits"}
    for name in methods_of(Seq2SeqModel):
        own = list(inspect.signature(getattr(model, name)).parameters)
        contract = list(inspect.signature(getattr(Seq2SeqModel, name)).parameters)
        assert own == contract, name


def test_seq2seq_models_and_language_models_can_be_searched():
    for model in [*make_models(), LanguageModel(Embedding(9, 12), Decoder([]))]:
        assert isinstance(model, DecoderModel)


def test_states_fulfil_the_protocol_and_have_a_batch_size():
    states = [model.init_state(model.encode(SOURCE, LENGTHS)) for model in make_models()]
    states.append(LanguageModel(Embedding(9, 12), Decoder([])).init_state(batch_size=2))
    for state in states:
        assert isinstance(state, DecoderState)
        assert state.batch_size == 2
        assert state.select(torch.tensor([1]), torch.tensor([1, 1])).batch_size == 1


def test_incomplete_model_cannot_be_constructed():
    class Incomplete(Seq2SeqModel):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Incomplete()


def test_models_without_self_attention_have_empty_weights_of_it():
    assert AttentionWeights() == ((), (), ())


def test_max_length_is_the_smaller_of_both_sides():
    short, long = (Embedding(9, 12, Learned(length, 12)) for length in (5, 7))
    for source, target in ((short, long), (long, short), (short, Embedding(9, 12))):
        assert Transformer(source, target, Encoder([]), Decoder([])).max_length == 5
    assert [model.max_length for model in make_models()] == [None, None]


def test_encode_bucketed_gives_the_same_as_encode():
    for model in make_models():
        expected, encoded = model.encode(SOURCE, LENGTHS), model.encode_bucketed(SOURCE, LENGTHS)
        assert torch.equal(encoded.mask, expected.mask)
        for one, two in zip(encoded.key_values, expected.key_values, strict=True):
            assert torch.equal(one.keys, two.keys) and torch.equal(one.values, two.values)


def test_calling_a_model_encodes_and_decodes():
    for model in make_models():
        target = torch.tensor([[1, 4, 5], [1, 6, 7]])
        expected = model.decode(target, model.encode(SOURCE, LENGTHS))
        assert torch.equal(model(SOURCE, LENGTHS, target), expected)


def test_concatenated_buckets_are_the_batch_in_its_order():
    source, lengths = torch.randint(4, 9, (5, 6)), torch.tensor([6, 2, 5, 3, 6])
    rows = [torch.tensor([4, 0, 2]), torch.tensor([3, 1])]
    for model in make_models():
        parts = [model.encode(source[r, : int(lengths[r].max())], lengths[r]) for r in rows]
        joined, expected = EncodedSource.concat(parts, rows), model.encode(source, lengths)
        assert torch.equal(joined.mask, expected.mask)
        target = torch.randint(4, 9, (5, 3))
        outputs = model.decode(target, joined)
        torch.testing.assert_close(outputs, model.decode(target, expected))
        if expected.initial_hidden is not None:
            torch.testing.assert_close(joined.initial_hidden, expected.initial_hidden)
