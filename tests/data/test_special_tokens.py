import pytest
import torch

from regard.data import BOS, EOS, PAD, UNK, check_token_ids


def test_special_numbers_are_the_first_four():
    assert sorted([PAD, BOS, EOS, UNK]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("tokens", "lengths", "words"),
    [
        (torch.ones(2, 3), None, r"whole numbers \(batch, position\), but they are torch.float32"),
        (torch.ones(3).long(), None, r"of shape \(3,\)"),
        (torch.tensor([[1, 9]]), None, "from 0 to 8, the vocabulary's last, but one is 9"),
        (torch.tensor([[-1, 2]]), None, "but one is -1"),
        (torch.ones(2, 3).long(), torch.tensor([3]), "one per sentence, 2"),
        (torch.ones(2, 3).long(), torch.tensor([3, 0]), "from 1 to 3 words.*sentence 1 has 0"),
        (torch.ones(2, 3).long(), torch.tensor([4, 1]), "sentence 0 has 4"),
    ],
)
def test_what_is_no_batch_of_sentences_is_refused(tokens, lengths, words):
    with pytest.raises(ValueError, match=f"(?s)(text|lengths).*{words}"):
        check_token_ids("text", tokens, 9, lengths)


def test_a_batch_that_fits_passes():
    assert check_token_ids("text", torch.tensor([[8, 0]]), 9, torch.tensor([2])) is None
