import torch

from regard.config import ModelConfig
from regard.models import build_classifier

BATCH, LENGTH, VOCABULARY = 3, 7, 11
SETTINGS = {"width": 24, "layers": 2, "heads": 6, "ffn_width": 20}


LENGTHS = torch.tensor([7, 3, 5])


def test_a_classifier_does_not_hear_padding():
    model = build_classifier(ModelConfig(**SETTINGS), VOCABULARY, classes=3).eval()
    source = torch.randint(4, VOCABULARY, (BATCH, LENGTH))
    together = model(source, LENGTHS)
    assert together.shape == (BATCH, 3)
    for row, length in enumerate(LENGTHS):
        alone = model(source[row : row + 1, :length], LENGTHS[row : row + 1])
        torch.testing.assert_close(alone, together[row : row + 1], rtol=1e-4, atol=1e-5)
