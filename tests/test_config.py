import json
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import (
    DataConfig,
    ModelConfig,
    RunConfig,
    SearchConfig,
    TrainConfig,
    parse_assignment,
    read_toml,
)
from regard.errors import RegardError


def test_config_is_immutable():
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'width'"):
        ModelConfig().width = 3


def test_settings_have_defaults_and_are_keyword_only():
    assert {field.name for field in fields(ModelConfig)} >= {
        "kind",
        "width",
        "layers",
        "heads",
        "score",
    }
    with pytest.raises(TypeError, match="positional"):
        ModelConfig("transformer")


def test_update_returns_a_copy_and_keeps_other_settings():
    before = RunConfig()
    after = before.update({"train": {"steps": 7, "seed": 3}, "model": {"width": 24}})
    assert after.train == replace(before.train, steps=7, seed=3)
    assert after.model == replace(before.model, width=24)
    assert (after.data, after.search) == (before.data, before.search)
    assert before == RunConfig()


def test_empty_update_changes_nothing():
    assert RunConfig.from_dict({}) == RunConfig()
    assert RunConfig.from_dict({"train": {}}) == RunConfig()


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ({"trian": {}}, r"no section is called 'trian'\. Did you mean 'train'\?"),
        ({"zzz": {}}, r"no section is called 'zzz'\. Choose from: data, model, search, train\."),
        ({"train": {"stepz": 3}}, r"no setting is called 'train.stepz'\. Did you mean 'train.step"),
        (
            {"data": {"vocab_sizes": 3}},
            r"no setting is called 'data.vocab_sizes'\. Did you mean 'data.vocab_size",
        ),
        (
            {"model": {"norm": "pst"}},
            r"no choice for model.norm is called 'pst'.*'post'.*post, pre",
        ),
        (
            {"model": {"norm": 3}},
            r"no choice for model.norm is called '3'\. Choose from: post, pre",
        ),
        ({"model": {"norm": ["post"]}}, "no choice for model.norm is called "),
        ({"model": 3}, r"\[model\] must be a table of settings, but it is 3"),
        ({"train": {"steps": 3.0}}, "train.steps must be an integer, but it is 3.0"),
        ({"train": {"steps": True}}, "train.steps must be an integer, but it is True"),
        ({"train": {"steps": "many"}}, "train.steps must be an integer, but it is 'many'"),
        ({"train": {"steps": None}}, "train.steps must be an integer, but it is None"),
        (
            {"train": {"learning_rate": "fast"}},
            "train.learning_rate must be a number, but it is 'fast'",
        ),
        (
            {"train": {"learning_rate": False}},
            "train.learning_rate must be a number, but it is False",
        ),
        ({"train": {"compile": 1}}, "train.compile must be true or false, but it is 1"),
        ({"model": {"score": 1}}, "model.score must be a string, but it is 1"),
        ({"model": {"key_heads": 2.5}}, "model.key_heads must be an integer, but it is 2.5"),
        ({"train": {"betas": 0.9}}, "train.betas must be 2 numbers, but it is 0.9"),
        ({"train": {"betas": [0.9]}}, r"train.betas must be 2 numbers, but it is \[0.9\]"),
        ({"train": {"betas": [0.9, "x"]}}, "train.betas must be a number, but it is 'x'"),
    ],
)
def test_unknown_name_or_wrong_type_is_refused_by_name(updates, message):
    with pytest.raises(RegardError, match=message):
        RunConfig.from_dict(updates)


@pytest.mark.parametrize("section", fields(RunConfig), ids=lambda section: section.name)
def test_misspelled_setting_suggests_the_nearest(section):
    for setting in fields(section.default_factory):
        short = setting.name[:-1]
        with pytest.raises(RegardError, match="Did you mean"):
            RunConfig.from_dict({section.name: {short + "_": 1}})


@pytest.mark.parametrize("number", [np.int64(7), np.int32(7), np.uint8(7)])
@pytest.mark.usefixtures("unchecked")
def test_numpy_integer_is_accepted_and_becomes_an_integer(number):
    config = TrainConfig(steps=number, learning_rate=number)
    assert (type(config.steps), type(config.learning_rate)) == (int, float)
    assert config == TrainConfig(steps=7, learning_rate=7.0)
    assert json.loads(json.dumps(config.learning_rate)) == 7.0


@pytest.mark.parametrize("number", [np.float64(0.5), np.float32(0.5), np.float16(0.5)])
@pytest.mark.usefixtures("unchecked")
def test_numpy_float_is_accepted_for_a_float_only(number):
    config = TrainConfig(learning_rate=number, betas=[number, 0.75])
    assert config == TrainConfig(learning_rate=0.5, betas=(0.5, 0.75))
    assert {type(config.learning_rate), *map(type, config.betas)} == {float}
    with pytest.raises(RegardError, match=r"train.steps must be an integer, but it is np\.float"):
        TrainConfig(steps=number)


@pytest.mark.parametrize("section", [{"layers": 2}, None, TrainConfig()])
@pytest.mark.usefixtures("unchecked")
def test_section_of_another_type_is_refused(section):
    with pytest.raises(TypeError, match=r"^model must be a ModelConfig, but it is .*from_dict"):
        RunConfig(model=section)


def test_integer_is_accepted_for_a_float():
    value = RunConfig.from_dict({"train": {"learning_rate": 2}}).train.learning_rate
    assert (value, type(value)) == (2.0, float)


def test_list_of_two_numbers_becomes_a_tuple():
    betas = RunConfig.from_dict({"train": {"betas": [0, 0.5]}}).train.betas
    assert betas == (0.0, 0.5)
    assert [type(beta) for beta in betas] == [float, float]


@pytest.mark.parametrize("none_value", [None, "none"])
def test_optional_setting_accepts_none(none_value):
    config = replace(RunConfig(), train=TrainConfig(minutes=3.0), model=ModelConfig(key_heads=2))
    after = config.update({"train": {"minutes": none_value}, "model": {"key_heads": none_value}})
    assert after == RunConfig()
    assert after.update({"train": {"minutes": 5}}).train.minutes == 5.0


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("train.steps=200", {"train": {"steps": 200}}),
        (" train.steps = 200 ", {"train": {"steps": 200}}),
        ("train.learning_rate=2e-3", {"train": {"learning_rate": 2e-3}}),
        ("train.compile=true", {"train": {"compile": True}}),
        ("train.betas=[0.9, 0.98]", {"train": {"betas": [0.9, 0.98]}}),
        ("model.score=scaled_dot", {"model": {"score": "scaled_dot"}}),
        ('model.score="additive"', {"model": {"score": "additive"}}),
        ("train.schedule = inverse_sqrt", {"train": {"schedule": "inverse_sqrt"}}),
        ("model.key_heads=none", {"model": {"key_heads": "none"}}),
        ("model.score=a=b", {"model": {"score": "a=b"}}),
        ("train.seed=", {"train": {"seed": ""}}),
        ("a.b.c=1", {"a": {"b.c": 1}}),
    ],
)
def test_assignment_is_parsed_into_section_key_and_value(assignment, expected):
    assert parse_assignment(assignment) == expected


@pytest.mark.parametrize(
    "assignment", ["steps=3", "train.steps", "train.=3", ".steps=3", "=3", "", "train steps 3"]
)
def test_malformed_assignment_is_quoted_in_the_error(assignment):
    with pytest.raises(RegardError, match="must be section.key=value, but it is '"):
        parse_assignment(assignment)


def test_assignment_without_a_section_suggests_it():
    with pytest.raises(RegardError, match=r"is 'layers=3'\. Did you mean 'model\.layers=3'\?$"):
        parse_assignment("layers=3")


settings = st.builds(
    RunConfig,
    data=st.builds(DataConfig, vocab_size=st.integers(1, 10**7), max_length_ratio=st.floats(1)),
    model=st.builds(ModelConfig, score=st.text(), key_heads=st.none() | st.integers()),
    train=st.builds(
        TrainConfig,
        minutes=st.none() | st.floats(0, 10**6, exclude_min=True),
        betas=st.tuples(*[st.floats(0, 1, exclude_max=True)] * 2),
        schedule=st.sampled_from(["inverse_sqrt", "cosine", "constant"]),
        compile=st.booleans(),
    ),
)


@given(settings)
def test_config_round_trips_through_json(config):
    back = RunConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert back == config
    assert type(back.train.betas) is tuple


def test_dict_has_every_setting_defaults_included():
    text = json.dumps(RunConfig().to_dict())
    for section in fields(RunConfig):
        for setting in fields(section.default_factory):
            assert f'"{setting.name}":' in text


def test_settings_file_is_toml(tmp_path):
    path = tmp_path / "some.toml"
    path.write_text('[train]\nsteps = 3\n[model]\nscore = "ádditive"\n', encoding="utf-8")
    assert read_toml(path) == {"train": {"steps": 3}, "model": {"score": "ádditive"}}


def test_unreadable_settings_file_is_reported_in_one_line(tmp_path):
    path = tmp_path / "some.toml"
    with pytest.raises(RegardError, match=r"in \S*some\.toml: No such file or directory$"):
        read_toml(path)
    path.write_text("steps 3")
    with pytest.raises(RegardError, match=r"some\.toml must be TOML, but it is not: .*line 1"):
        read_toml(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RegardError, match=r"some\.toml must be UTF-8, but it is UTF-16"):
        read_toml(path)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.batch_tokens=0", "train.batch_tokens must be 1 or more, but it is 0"),
        ("train.seed=-1", "train.seed must be 0 or more, but it is -1"),
        ("train.learning_rate=nan", "train.learning_rate must be 0 or more, but it is nan"),
        ("train.minutes=0.0", "train.minutes must be above 0 and at most 1000000, but it is 0.0"),
        ("train.minutes=inf", "train.minutes must be above 0 and at most 1000000, but it is inf"),
        ("train.betas=[0.9, 1.0]", "train.betas must be from 0 to below 1, but they are"),
        (
            "train.label_smoothing=1",
            "train.label_smoothing must be from 0 to below 1, but it is 1.0",
        ),
        ("train.seed=9223372036854775808", "train.seed must be at most 9223372036854775807"),
        ("model.width=0", "model.width must be 1 or more, but it is 0"),
        ("model.layers=0", "model.layers must be 1 or more, but it is 0"),
        ("model.dropout=1.5", "model.dropout must be from 0 to below 1, but it is 1.5"),
        ("train.learning_rate=inf", "train.learning_rate must be finite, but it is inf"),
        ("train.steps=1" + 400 * "0", "train.steps must be at most 1000000000000, but it is 1000"),
        ("train.steps=1" + 5000 * "0", "train.steps must be an integer, but it is inf"),
        ("train.threads=10000000000", "train.threads must be at most 1024, but it is 10000000000"),
        (
            "data.vocab_size=1000000000",
            "data.vocab_size must be at most 10000000, but it is 1000000000",
        ),
        ("model.width=100000000000", "model.width must be at most 1000000, but it is"),
        (
            "search.length_penalty=nan",
            "search.length_penalty must be from -10 to 10, but it is nan",
        ),
        (
            "search.length_penalty=300",
            "search.length_penalty must be from -10 to 10, but it is 300.0",
        ),
        ("data.max_length=0", "data.max_length must be 1 or more, but it is 0"),
        ("search.beam_size=0", "search.beam_size must be 1 or more, but it is 0"),
    ],
)
def test_value_out_of_range_is_refused_with_its_limits(setting, message):
    with pytest.raises(RegardError, match=message):
        RunConfig.from_dict(parse_assignment(setting))


@pytest.mark.parametrize(("text", "value"), [(".3", 0.3), ("-.5", -0.5), ("words", "words")])
def test_assignment_value_may_be_a_bare_number_or_word(text, value):
    assert parse_assignment(f"model.dropout={text}") == {"model": {"dropout": value}}


@pytest.mark.parametrize("name", ["width", "model.width", "modle.width"])
def test_setting_without_its_section_is_refused_with_the_section(name):
    with pytest.raises(
        RegardError, match=r"width must be in its section: under \[model\] in a file"
    ):
        RunConfig.from_dict({name: 32})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ModelConfig(kind="transfomer"), "'transfomer'. Did you mean 'transformer'"),
        (lambda: ModelConfig(width="big"), "model.width must be an integer, but it is 'big'"),
        (lambda: SearchConfig(length_penalty="x"), "search.length_penalty must be a number"),
        (lambda: TrainConfig(betas=0.9), "train.betas must be 2 numbers, but it is 0.9"),
        (lambda: DataConfig(joint="yes"), "data.joint must be true or false, but it is 'yes'"),
    ],
)
def test_value_of_the_wrong_type_is_refused_in_a_constructor(unchecked, build, message):
    with pytest.raises(RegardError, match=message):
        build()


def test_constructor_converts_to_the_type_of_the_setting(unchecked):
    config = TrainConfig(minutes=3, betas=[0, 0.5])
    assert type(config.minutes) is float
    assert config.betas == (0.0, 0.5)
