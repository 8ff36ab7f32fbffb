import inspect

import pytest
import torch

from regard.models import Decoder, Embedding, Encoder, LanguageModel, Recurrent, Transformer
from regard.models.protocols import DecoderModel, Looks, Seq2SeqModel, encoded, longest
from regard.positions import Learned


def asked_by(contract):
    return {name for name, _ in inspect.getmembers(contract, inspect.isfunction) if name[0] != "_"}


@pytest.mark.parametrize("model", [Transformer, Recurrent])
def test_every_translator_keeps_the_contract(model):
    assert asked_by(Seq2SeqModel) >= {"encode", "decode", "start", "step", "output", "look"}
    for name in asked_by(Seq2SeqModel):
        theirs = list(inspect.signature(getattr(model, name)).parameters)
        wanted = list(inspect.signature(getattr(Seq2SeqModel, name)).parameters)
        assert theirs[: len(wanted)] == wanted, name


def test_a_language_model_can_be_searched():
    assert asked_by(DecoderModel) <= set(dir(LanguageModel))


def test_a_model_without_self_attention_has_no_such_looks():
    assert Looks() == ((), (), ())


def test_a_translator_has_room_for_as_many_tokens_as_both_its_sides():
    short, long = (Embedding(9, 12, Learned(length, 12)) for length in (5, 7))
    for source, target in ((short, long), (long, short), (short, Embedding(9, 12))):
        assert Transformer(source, target, Encoder([]), Decoder([])).longest == 5
    assert Transformer(*sides(), Encoder([]), Decoder([])).longest is None
    assert longest(Recurrent(*sides())) is None


def test_many_sentences_are_encoded_the_way_a_model_has_for_them(monkeypatch):
    source, lengths = torch.tensor([[4, 5]]), torch.tensor([2])
    for model in (Transformer(*sides(), Encoder([]), Decoder([])), Recurrent(*sides())):
        apart = hasattr(model, "encode_apart")
        monkeypatch.setattr(model, "encode_apart" if apart else "encode", lambda *given: given)
        assert encoded(model, source, lengths) == (source, lengths)


def sides():
    return [Embedding(9, 12)] * 2
