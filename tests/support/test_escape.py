import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from regard._support.text import escape_control, shorten, shorten_middle
from regard.errors import MAX_MESSAGE_CHARACTERS, RegardError

CONTROL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
ALL = st.text(st.characters(codec=None))  # lone surrogates, too


@given(ALL)
def test_escaped_text_has_no_control_character(text):
    escaped = escape_control(text)
    assert {unicodedata.category(c) for c in escaped} & CONTROL <= (
        {"Cf"} if {"\u200c", "\u200d"} & {*escaped} else set()
    )
    assert escape_control(escaped) == escaped
    assert escape_control(text, keep="\n").replace("\n", "\\n") == escaped


@given(ALL)
def test_message_of_an_error_is_one_printable_line(text):
    message = str(RegardError(f"cannot read {text}: no such file"))
    assert message == escape_control(message)
    assert len(message.splitlines()) == 1 and len(message) <= MAX_MESSAGE_CHARACTERS


def test_long_message_keeps_its_beginning_and_its_end():
    message = str(RegardError(f"cannot read {'x' * 10**6}: choose another"))
    assert len(message) <= MAX_MESSAGE_CHARACTERS
    assert message.startswith("cannot read xxx") and message.endswith("x: choose another")


@given(ALL | st.lists(st.integers()), st.integers(4, 50))
def test_shortened_value_is_within_its_limit(value, limit):
    assert len(shorten(value, limit)) <= limit + 2
    if isinstance(value, str):
        assert len(shorten_middle(value, limit)) <= limit


def test_integer_that_python_refuses_to_print_is_shortened():
    assert shorten(10**5000) == shorten([10**5000]) == "too long to show"
