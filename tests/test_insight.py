import pytest

from regard.insight import alignment_error_rate


@pytest.mark.parametrize(
    "found, gold, possible, rate",
    [
        ([(0, 0), (1, 1)], [(0, 0), (1, 1)], None, 0.0),
        ([(0, 1)], [(0, 0)], None, 1.0),
        ([(0, 0), (1, 2)], [(0, 0), (1, 1)], None, 0.5),
        ([(0, 0), (1, 2)], [(0, 0)], [(1, 2)], 0.0),
        ([(0, 0)], [(0, 0), (1, 1)], None, 1 / 3),
        ([], [], None, 0.0),
        ([], [(0, 0)], None, 1.0),
    ],
)
def test_alignment_error_rate_by_hand(found, gold, possible, rate):
    assert alignment_error_rate(found, gold, possible) == pytest.approx(rate)


def test_links_may_be_given_twice_or_by_a_generator():
    assert alignment_error_rate((link for link in [(0, 0), (0, 0)]), [(0, 0)]) == 0
