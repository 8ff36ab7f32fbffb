import pytest

from regard import presets
from regard.config import RunConfig
from regard.errors import RegardError
from regard.models import build


def test_names_are_sorted():
    assert presets.names() == sorted(presets.names())
    assert {"multi30k", "multi30k-recurrent"} <= set(presets.names())


@pytest.mark.parametrize("name", presets.names())
def test_preset_has_valid_settings(name):
    config = RunConfig.from_dict(presets.read(name))
    assert config != RunConfig()
    build(config.model, 11)


@pytest.mark.parametrize("name", presets.names())
def test_first_line_describes_a_preset(name):
    assert presets.text(name).startswith("# ")
    assert presets.describe(name).endswith(".")
    assert not presets.describe(name).startswith("#")
    assert f"{name:20} {presets.describe(name)}" in presets.table().splitlines()


@pytest.mark.parametrize("name", presets.names())
def test_copy_equals_the_preset(name, tmp_path):
    path = presets.copy(name, tmp_path / "new")
    assert path == tmp_path / "new" / f"{name}.toml"
    assert path.read_text(encoding="utf-8") == presets.text(name)


def test_copy_never_overwrites_a_file(tmp_path):
    (tmp_path / "multi30k.toml").write_text("mine")
    with pytest.raises(RegardError, match=r"multi30k.toml exists already; rename it"):
        presets.copy("multi30k", tmp_path)
    assert (tmp_path / "multi30k.toml").read_text() == "mine"


@pytest.mark.parametrize("function", [presets.text, presets.read, presets.describe])
def test_unknown_preset_suggests_the_nearest(function):
    with pytest.raises(RegardError, match="no preset is called 'multi30'.*mean 'multi30k'"):
        function("multi30")


def test_unknown_preset_is_not_copied(tmp_path):
    with pytest.raises(RegardError, match="no preset is called '../multi30k'"):
        presets.copy("../multi30k", tmp_path)
    assert list(tmp_path.iterdir()) == []
