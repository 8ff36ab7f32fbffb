import pytest
import torch

from regard.gallery.spelling import (
    LETTERS,
    MAX_LENGTH,
    NAMES,
    Speller,
    accuracy,
    load_split,
    train_speller,
)

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def held_out():
    return load_split()[1]


@pytest.fixture(scope="module")
def speller():
    with torch.random.fork_rng():
        return train_speller(load_split()[0], steps=200)


def test_train_and_test_images_are_disjoint():
    training, held_out = load_split()
    assert len(training.labels) + len(held_out.labels) == 1797
    assert sorted(set(held_out.labels.tolist())) == list(range(10))
    assert all(part.min() == 0 and part.max() == 1 for part in (training.images, held_out.images))
    known = {image.numpy().tobytes() for image in training.images}
    assert not any(image.numpy().tobytes() in known for image in held_out.images)


def test_trained_speller_beats_random_guessing(speller, held_out):
    names, _ = speller.spell(held_out.images)
    assert accuracy(names, held_out.labels) > 0.5  # 0.1 if guessed at random
    assert accuracy([NAMES[digit] for digit in held_out.labels.tolist()], held_out.labels) == 1.0


def test_without_image_all_names_are_equal(speller, held_out):
    names, _ = speller.spell(held_out.images, visible_letters=0)
    assert len(set(names)) == 1


def test_weights_over_patches_sum_to_one(speller, held_out):
    _, weights = speller.spell(held_out.images[:5])
    assert weights.shape == (5, 4, MAX_LENGTH, 16)
    assert weights.sum(-1).allclose(torch.tensor(1.0))


def test_decoder_is_causal():
    model = Speller().eval()
    images = torch.rand(3, 8, 8)
    letters = torch.randint(len(LETTERS), (3, MAX_LENGTH))
    changed = letters.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % len(LETTERS)
    before, after = model(images, letters), model(images, changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_patch_has_two_by_two_pixels():
    model = Speller().eval()
    image = torch.rand(1, 8, 8)
    other = image.clone()
    other[:, 2:4, 4:6] += 1  # the patch in row 1, column 2
    known = []
    model.patch.register_forward_hook(lambda module, given, result: known.append(given[0]))
    for one in (image, other):
        model(one, torch.zeros(1, 1, dtype=torch.long))
    changed = (known[0] != known[1]).any(-1)[0]
    assert changed.nonzero().flatten().tolist() == [1 * 4 + 2]
