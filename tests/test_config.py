from dataclasses import FrozenInstanceError, fields

import pytest

from regard.config import Model


def test_settings_cannot_be_changed_once_made():
    with pytest.raises(FrozenInstanceError):
        Model().width = 3


def test_every_setting_has_a_default_and_is_named():
    assert {field.name for field in fields(Model)} >= {"kind", "width", "layers", "heads", "score"}
    with pytest.raises(TypeError):
        Model("transformer")
