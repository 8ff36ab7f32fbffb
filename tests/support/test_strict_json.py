import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard._support.strict_json import MAX_DEPTH, parse_json, parse_object, read_json
from regard.errors import RegardError

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda value: st.lists(value) | st.dictionaries(st.text(), value), max_leaves=20
)


@given(VALUES)
def test_value_is_read_as_the_standard_library_reads_it(value):
    text = json.dumps(value)
    assert parse_json(text, "text", surrogates=True) == json.loads(text)


def nested(depth):
    return "[" * depth + "]" * depth


def test_nesting_is_accepted_up_to_the_limit():
    assert parse_json(nested(MAX_DEPTH), "text") == json.loads(nested(MAX_DEPTH))


@pytest.mark.parametrize(
    "text, message",
    [
        (nested(MAX_DEPTH + 1), "nested at most 32 deep"),
        (nested(10**5), "nested at most 32 deep"),
        ('{"a":' * 10**5, "nested at most 32 deep"),
        ('[{"a": 1, "b": 2, "a": 3}]', "each key once, but 'a' is there twice"),
        ("[NaN]", "finite numbers, but one is NaN"),
        ("-Infinity", "finite numbers, but one is -Infinity"),
        ("[1e400]", "finite numbers, but one is 1e400"),
        ("-1e400", "finite numbers, but one is -1e400"),
        ("9" * 21, "integers of at most 20 digits, but one has 21"),
        ("9" * 10**5, "integers of at most 20 digits, but one has 100000"),
        (r'["\ud800"]', r"Unicode text, but it has the lone surrogate U\+D800"),
        (r'{"\uDFFF": 1}', r"Unicode text, but it has the lone surrogate U\+DFFF"),
        ("", "invalid or truncated at character 0 of 0"),
        ("[1", "invalid or truncated at character 2 of 2"),
        ("{} {}", "invalid or truncated at character 3 of 5"),
        ('\ufeff{"a": 1}', "invalid or truncated at character 0"),
        (b"[\xff]", "UTF-8, but it is not, at byte 1"),
        ("[1]".encode("utf-16"), "UTF-8, but it is not, at byte 0"),
    ],
)
def test_text_with_more_than_one_reading_is_refused(text, message):
    with pytest.raises(RegardError, match=f"^the file must .*{message}"):
        parse_json(text, "the file")


def test_surrogate_pair_is_a_character():
    assert parse_json(r'"\ud83d\ude00"', "text") == "😀"


def test_log_may_have_numbers_that_are_not_finite():
    assert parse_json("[Infinity, 1e400]", "text", finite=False) == [float("inf")] * 2


@pytest.mark.parametrize("text", ["[]", "3", "null", '"a"', "true"])
def test_other_value_is_no_object(text):
    with pytest.raises(RegardError, match="the line must be a JSON object, but it is "):
        parse_object(text, "the line")


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name, kind in (("pipe", "a pipe"), ("link", "a device"), (".", "a folder")):
        with pytest.raises(RegardError, match=f"must be a file, but it is {kind}$"):
            read_json(tmp_path / name, 100)


def test_file_above_the_limit_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "some.json"
    with path.open("wb") as file:
        file.truncate(2**40)  # a sparse file: reading it would fill the memory
    with pytest.raises(RegardError, match=re.escape("have at most 1,000 bytes, but it has 1,099,")):
        read_json(path, 1000)
    path.write_text('{"a": 1}')
    assert read_json(path, 8) == {"a": 1}
