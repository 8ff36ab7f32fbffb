import re
from pathlib import Path

import pytest
import torch

from regard import shapes

SOURCE = Path(shapes.__file__).parent
TYPES = ("Queries", "Keys", "Values", "Scores", "Weights", "Context")


def alphabet():
    """Read the words and letters from the table in the docstring."""
    rows = re.findall(r"^(\w+) +(\w) {8}", shapes.__doc__, flags=re.MULTILINE)
    return dict(rows)


def test_the_table_gives_each_axis_a_word_and_a_letter_of_its_own():
    words = alphabet()
    assert {"batch", "head", "query", "key", "width"} <= words.keys()
    assert len(set(words.values())) == len(words)


@pytest.mark.parametrize("name", TYPES)
def test_types_are_made_of_the_words_of_the_table(name):
    axes = getattr(shapes, name).dim_str.replace("*", "").replace("#", "").split()
    assert axes
    assert set(axes) <= alphabet().keys()


def test_einsums_use_the_letters_of_the_table():
    found = [
        equation
        for file in SOURCE.rglob("*.py")
        for equation in re.findall(r'einsum\(\s*"([^"]+)"', file.read_text())
    ]
    assert found
    for equation in found:
        assert set(re.sub(r"[.,>-]", "", equation)) <= set(alphabet().values()), equation


def test_queries_keys_and_scores_tell_wrong_kinds_apart():
    assert isinstance(torch.zeros(2, 3, 5, 12), shapes.Queries)
    assert not isinstance(torch.zeros(5), shapes.Queries)
    assert not isinstance(torch.zeros(5, 12).long(), shapes.Queries)
