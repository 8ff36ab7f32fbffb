import pytest

from regard.errors import RegardError, unknown_name

KNOWN = ("scaled_dot", "additive", "cosine")


def test_an_unknown_name_offers_the_nearest():
    error = unknown_name("attention score", "aditive", KNOWN)
    assert str(error) == (
        "no attention score is called 'aditive'. Did you mean 'additive'? "
        "Choose from: additive, cosine, scaled_dot."
    )


def test_a_name_like_no_other_offers_the_whole_list():
    error = unknown_name("kernel", "xyz", KNOWN)
    assert str(error) == "no kernel is called 'xyz'. Choose from: additive, cosine, scaled_dot."


@pytest.mark.parametrize("name", KNOWN)
def test_each_name_with_a_letter_missing_finds_itself(name):
    assert f"Did you mean {name!r}?" in str(unknown_name("score", name[:2] + name[3:], KNOWN))


def test_what_a_reader_can_repair_is_an_error_of_its_own():
    # the command line prints these as one line, and nothing else
    assert isinstance(unknown_name("score", "x", KNOWN), RegardError)
    assert issubclass(RegardError, ValueError)
