import re
from pathlib import Path

import pytest
import torch

from regard import shapes

SOURCE = Path(shapes.__file__).parent
TYPES = ("Queries", "Keys", "Scores", "Weights", "Context")


def axis_letters():
    """Read the words and letters from the table in the docstring."""
    rows = re.findall(r"^(\w+) +(\w) {8}", shapes.__doc__, flags=re.MULTILINE)
    return dict(rows)


def test_every_axis_has_a_word_and_a_unique_letter():
    words = axis_letters()
    assert {"batch", "head", "query", "key", "width"} <= words.keys()
    assert len(set(words.values())) == len(words)


@pytest.mark.parametrize("name", TYPES)
def test_tensor_types_use_the_words_of_the_table(name):
    axes = getattr(shapes, name).dim_str.replace("*", "").replace("#", "").split()
    assert axes
    assert set(axes) <= axis_letters().keys()


def test_einsums_use_the_letters_of_the_table():
    equations = [
        equation
        for file in SOURCE.rglob("*.py")
        for equation in re.findall(r'einsum\(\s*"([^"]+)"', file.read_text())
    ]
    assert equations
    for equation in equations:
        assert set(re.sub(r"[.,>-]", "", equation)) <= set(axis_letters().values()), equation


def test_tensor_types_check_axes_and_dtype():
    assert isinstance(torch.zeros(2, 3, 5, 12), shapes.Queries)
    assert not isinstance(torch.zeros(5), shapes.Queries)
    assert not isinstance(torch.zeros(5, 12).long(), shapes.Queries)
