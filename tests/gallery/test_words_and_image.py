import numpy as np
import pytest
from matplotlib import rc_context

from regard.gallery import words_and_image
from regard.gallery.spelling import NAMES, accuracy, load_split, train_speller
from regard.viz import font_families

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def speller():
    return train_speller(load_split()[0], steps=40)


@pytest.fixture
def drawn(speller, monkeypatch):
    monkeypatch.setattr(words_and_image, "train_speller", lambda _: speller)
    return speller, words_and_image.draw()


def test_overlay_opacity_follows_the_weights(drawn):
    speller, pictures = drawn
    _, held_out = load_split()
    names, weights = speller.spell(held_out.images)
    panels = np.array(pictures["letter-by-letter"].axes).reshape(len(words_and_image.SHOWN), -1)
    for row, digit in zip(panels, words_and_image.SHOWN, strict=True):
        drawn_image = np.asarray(row[0].images[0].get_array())
        n = next(
            n for n, image in enumerate(held_out.images.numpy()) if (image == drawn_image).all()
        )
        of_digit = [names[m] for m in (held_out.labels == digit).nonzero().flatten().tolist()]
        assert held_out.labels[n] == digit
        assert names[n] == NAMES[digit] or NAMES[digit] not in of_digit
        used = [axes for axes in row[1:] if axes.images]
        spelled = [axes.get_title() for axes in used]
        assert spelled == [*names[n], "end"][: len(row) - 1]
        for letter, axes in enumerate(used):
            image, glass = (np.asarray(one.get_array()) for one in axes.images)
            assert image == pytest.approx(held_out.images[n].numpy())
            expected = (weights[n].mean(0)[letter] / words_and_image.MAX_WEIGHT).clamp(max=1)
            assert glass[..., 3].ravel() == pytest.approx(expected.numpy(), abs=1e-6)


def test_accuracy_is_measured_on_test_images(drawn):
    speller, pictures = drawn
    _, held_out = load_split()
    share = accuracy(speller.spell(held_out.images)[0], held_out.labels)
    assert f"{share:.1%} of 360" in pictures["letter-by-letter"].get_supxlabel()
    (bars,) = pictures["letters-with-image"].axes[0].containers
    shares = [
        accuracy(speller.spell(held_out.images, letters)[0], held_out.labels)
        for letters in range(len(bars))
    ]
    assert [bar.get_height() for bar in bars] == pytest.approx(shares)


def test_chinese_titles_are_drawn_without_font_warnings(speller, monkeypatch, caplog):
    if not font_families()[1:]:
        pytest.skip("no font with Chinese characters is installed")
    monkeypatch.setattr(words_and_image, "train_speller", lambda _: speller)
    with rc_context({"font.family": font_families()}):
        figure = words_and_image.draw()["head-by-head"]
        for axes in figure.axes:
            axes.set_title("结束")
        figure.canvas.draw()
    assert [record.getMessage() for record in caplog.records] == []
