import pytest

from regard.errors import RegardError, unknown_name

KNOWN = ("scaled_dot", "additive", "cosine")


def test_unknown_name_suggests_the_nearest():
    error = unknown_name("attention score", "aditive", KNOWN)
    assert str(error) == (
        "no attention score is called 'aditive'. Did you mean 'additive'? "
        "Choose from: additive, cosine, scaled_dot."
    )


def test_name_unlike_any_other_lists_the_choices():
    error = unknown_name("kernel", "xyz", KNOWN)
    assert str(error) == "no kernel is called 'xyz'. Choose from: additive, cosine, scaled_dot."


@pytest.mark.parametrize("name", KNOWN)
def test_name_with_a_missing_letter_is_suggested(name):
    assert f"Did you mean {name!r}?" in str(unknown_name("score", name[:2] + name[3:], KNOWN))


def test_regard_error_is_a_value_error():
    assert isinstance(unknown_name("score", "x", KNOWN), RegardError)
    assert issubclass(RegardError, ValueError)
