import hmac
from pathlib import Path

import pytest

from regard._support import user_cache
from regard.errors import RegardError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_signature_is_of_the_data_and_of_the_user(tmp_path, monkeypatch):
    signature = user_cache.sign(b"data")
    assert user_cache.is_signed(b"data", signature)
    assert not user_cache.is_signed(b"other", signature)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert not user_cache.is_signed(b"data", signature)


@pytest.mark.parametrize("content", [b"", b"\0", b"x" * 31])
def test_incomplete_key_is_replaced(content):
    path = user_cache.cache_folder() / "key"
    path.parent.mkdir()
    path.write_bytes(content)
    assert not user_cache.is_signed(b"data", hmac.new(content, b"data", "sha256").hexdigest())
    assert len(path.read_bytes()) == user_cache.KEY_BYTES
    assert user_cache.is_signed(b"data", user_cache.sign(b"data"))


def test_key_is_readable_by_its_user_only():
    user_cache.sign(b"data")
    assert (user_cache.cache_folder() / "key").stat().st_mode & 0o777 == 0o600


def test_missing_home_folder_is_a_regard_error(monkeypatch):
    def fail():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", fail)
    with pytest.raises(RegardError, match="set XDG_CACHE_HOME"):
        user_cache.sign(b"data")
