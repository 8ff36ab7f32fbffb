import numpy as np
import pytest

from regard.gallery import words_and_image
from regard.gallery.spelling import NAMES, digits, learn, right

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def drawn(monkeypatch):
    speller = learn(digits()[0], steps=40)
    monkeypatch.setattr(words_and_image, "learn", lambda _: speller)
    return speller, words_and_image.draw()


def test_letters_are_drawn_over_their_image_as_they_look(drawn):
    speller, pictures = drawn
    _, held = digits()
    names, looks = speller.spell(held.images)
    panels = np.array(pictures["letter-by-letter"].axes).reshape(len(words_and_image.SHOWN), -1)
    for row, digit in zip(panels, words_and_image.SHOWN, strict=True):
        drawn_image = np.asarray(row[0].images[0].get_array())
        n = next(n for n, image in enumerate(held.images.numpy()) if (image == drawn_image).all())
        of_digit = [names[m] for m in (held.shown == digit).nonzero().flatten().tolist()]
        assert held.shown[n] == digit
        assert names[n] == NAMES[digit] or NAMES[digit] not in of_digit
        used = [axes for axes in row[1:] if axes.images]
        spelled = [axes.get_title() for axes in used]
        assert spelled == [*names[n], "end"][: len(row) - 1]
        for letter, axes in enumerate(used):
            image, glass = (np.asarray(one.get_array()) for one in axes.images)
            assert image == pytest.approx(held.images[n].numpy())
            wanted = (looks[n].mean(0)[letter] / words_and_image.TOP).clamp(max=1)
            assert glass[..., 3].ravel() == pytest.approx(wanted.numpy(), abs=1e-6)


def test_figures_are_measured_on_images_held_out(drawn):
    speller, pictures = drawn
    _, held = digits()
    share = right(speller.spell(held.images)[0], held.shown)
    assert f"{share:.1%} of 360" in pictures["letter-by-letter"].get_supxlabel()
    (bars,) = pictures["when-it-is-needed"].axes[0].containers
    found = [right(speller.spell(held.images, seen)[0], held.shown) for seen in range(len(bars))]
    assert [bar.get_height() for bar in bars] == pytest.approx(found)
