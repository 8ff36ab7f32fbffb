import pytest

from regard.explorer.workers import Cancelled, CancelToken


def test_token_is_cancelled_after_cancel():
    token = CancelToken()
    assert not token.is_cancelled()
    token.raise_if_cancelled()
    token.cancel()
    assert token.is_cancelled()
    with pytest.raises(Cancelled):
        token.raise_if_cancelled()
