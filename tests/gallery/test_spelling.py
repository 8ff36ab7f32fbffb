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
def held():
    return load_split()[1]


@pytest.fixture(scope="module")
def speller():
    with torch.random.fork_rng():
        return train_speller(load_split()[0], steps=200)


def test_train_and_test_images_are_disjoint():
    learned, held = load_split()
    assert len(learned.labels) + len(held.labels) == 1797
    assert sorted(set(held.labels.tolist())) == list(range(10))
    assert all(part.min() == 0 and part.max() == 1 for part in (learned.images, held.images))
    seen = {image.numpy().tobytes() for image in learned.images}
    assert not any(image.numpy().tobytes() in seen for image in held.images)


def test_trained_speller_beats_chance(speller, held):
    names, _ = speller.spell(held.images)
    assert accuracy(names, held.labels) > 0.5  # a tenth by chance
    assert accuracy([NAMES[digit] for digit in held.labels.tolist()], held.labels) == 1.0


def test_without_image_all_names_are_equal(speller, held):
    names, _ = speller.spell(held.images, visible_letters=0)
    assert len(set(names)) == 1


def test_weights_over_patches_sum_to_one(speller, held):
    _, looks = speller.spell(held.images[:5])
    assert looks.shape == (5, 4, MAX_LENGTH, 16)
    assert looks.sum(-1).allclose(torch.tensor(1.0))


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
    seen = []
    model.patch.register_forward_hook(lambda module, given, result: seen.append(given[0]))
    for one in (image, other):
        model(one, torch.zeros(1, 1, dtype=torch.long))
    changed = (seen[0] != seen[1]).any(-1)[0]
    assert changed.nonzero().flatten().tolist() == [1 * 4 + 2]
