import pytest

from regard import presets
from regard.config import RunConfig
from regard.errors import RegardError
from regard.models import build


def test_presets_are_listed_in_order():
    assert presets.names() == sorted(presets.names())
    assert {"multi30k", "multi30k-recurrent"} <= set(presets.names())


@pytest.mark.parametrize("name", presets.names())
def test_each_preset_is_made_of_settings_that_exist_and_fit(name):
    settings = RunConfig.from_dict(presets.read(name))
    assert settings != RunConfig()
    build(settings.model, (11, 11))


@pytest.mark.parametrize("name", presets.names())
def test_each_preset_says_first_what_it_is_for(name):
    assert presets.text(name).startswith("# ")
    assert presets.about(name).endswith(".")
    assert not presets.about(name).startswith("#")


@pytest.mark.parametrize("name", presets.names())
def test_a_copy_is_the_preset_to_the_letter(name, tmp_path):
    path = presets.copy(name, tmp_path / "new")
    assert path == tmp_path / "new" / f"{name}.toml"
    assert path.read_text(encoding="utf-8") == presets.text(name)


def test_a_copy_overwrites_nothing(tmp_path):
    (tmp_path / "multi30k.toml").write_text("mine")
    with pytest.raises(RegardError, match=r"multi30k.toml exists already; rename it"):
        presets.copy("multi30k", tmp_path)
    assert (tmp_path / "multi30k.toml").read_text() == "mine"


@pytest.mark.parametrize("act", [presets.text, presets.read, presets.about])
def test_an_unknown_preset_offers_the_nearest(act):
    with pytest.raises(RegardError, match="no preset is called 'multi30'.*mean 'multi30k'"):
        act("multi30")


def test_an_unknown_preset_is_not_copied(tmp_path):
    with pytest.raises(RegardError, match="no preset is called '../multi30k'"):
        presets.copy("../multi30k", tmp_path)
    assert list(tmp_path.iterdir()) == []
