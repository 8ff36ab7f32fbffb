import pytest
import torch

from regard.gallery.spelling import LETTERS, LONGEST, NAMES, Speller, digits, learn, right

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def held():
    return digits()[1]


@pytest.fixture(scope="module")
def speller():
    with torch.random.fork_rng():
        return learn(digits()[0], steps=200)


def test_no_image_is_both_learned_and_held_out():
    learned, held = digits()
    assert len(learned.shown) + len(held.shown) == 1797
    assert sorted(set(held.shown.tolist())) == list(range(10))
    assert all(part.min() == 0 and part.max() == 1 for part in (learned.images, held.images))
    seen = {image.numpy().tobytes() for image in learned.images}
    assert not any(image.numpy().tobytes() in seen for image in held.images)


def test_names_are_spelled_far_better_than_by_chance(speller, held):
    names, _ = speller.spell(held.images)
    assert right(names, held.shown) > 0.5  # a tenth by chance
    assert right([NAMES[digit] for digit in held.shown.tolist()], held.shown) == 1.0


def test_without_the_image_all_names_are_one(speller, held):
    names, _ = speller.spell(held.images, seen=0)
    assert len(set(names)) == 1


def test_every_letter_looks_at_the_patches_with_all_its_weight(speller, held):
    _, looks = speller.spell(held.images[:5])
    assert looks.shape == (5, 4, LONGEST, 16)
    assert looks.sum(-1).allclose(torch.tensor(1.0))


def test_no_letter_sees_those_that_follow():
    model = Speller().eval()
    images = torch.rand(3, 8, 8)
    letters = torch.randint(len(LETTERS), (3, LONGEST))
    changed = letters.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % len(LETTERS)
    before, after = model(images, letters), model(images, changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_a_patch_is_two_by_two_pixels():
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
