import ast
from pathlib import Path

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


def test_of_many_names_the_nearest_are_listed():
    known = [f"layers.{n}.{part}" for n in range(40) for part in ("attention", "feed_forward")]
    message = str(unknown_name("module", "layers.7.atention", known))
    assert "Did you mean 'layers.7.attention'? Choose from: " in message
    assert message.endswith(", and 68 others.")
    assert message.count("attention") > message.count("feed_forward")


def test_end_of_a_dotted_name_is_enough_for_a_suggestion():
    known = [f"transformer.h.{n}{part}" for n in range(12) for part in ("", ".attn", ".mlp")]
    assert "Did you mean 'transformer.h.9'?" in str(unknown_name("module", "h.9", known))
    assert "Did you mean 'transformer.h.9.mlp'?" in str(unknown_name("module", "9.mlp", known))
    assert "Did you mean" not in str(unknown_name("module", "", known))


SETTINGS = ("train.learning_rate", "train.steps", "train.shard", "data.vocab_size", "model.width")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("train.lr", "train.learning_rate"),
        ("data.vs", "data.vocab_size"),
        ("train.step", "train.steps"),
        ("trian.steps", "train.steps"),
    ],
)
def test_setting_is_suggested_by_its_last_part_or_initials(name, nearest):
    assert f"Did you mean {nearest!r}?" in str(unknown_name("setting", name, SETTINGS))


@pytest.mark.parametrize("name", ["train.x", "train.epochs", "data.dropout"])
def test_equal_sections_alone_are_no_likeness(name):
    assert "Did you mean" not in str(unknown_name("setting", name, SETTINGS))


def test_regard_error_is_a_value_error():
    assert isinstance(unknown_name("score", "x", KNOWN), RegardError)
    assert issubclass(RegardError, ValueError)


SOURCES = sorted((Path(__file__).parents[1] / "src" / "regard").rglob("*.py"))
BUILT_IN = {"ValueError", "KeyError", "IndexError", "LookupError", "RuntimeError", "Exception"}


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_user_errors_are_raised_as_regard_error(file):
    """`RegardError` is a ValueError: one rule for callers, and one line on the command line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and node.exc is not None:
            call = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            assert getattr(call, "id", "") not in BUILT_IN, f"{file}, line {node.lineno}"
