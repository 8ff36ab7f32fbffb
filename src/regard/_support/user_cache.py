"""The user's cache folder, and a secret key that authenticates the user's own files."""

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from regard.errors import RegardError

KEY_BYTES = 32


def cache_folder() -> Path:
    """Return the folder of caches: `regard` under $XDG_CACHE_HOME or ~/.cache.

    Raises:
        RegardError: if the user has no home folder, as in some containers.
    """
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "regard"
    try:
        return Path.home() / ".cache" / "regard"
    except RuntimeError as error:
        raise RegardError(
            "the cache needs a folder, but this user has no home folder; set XDG_CACHE_HOME"
        ) from error


def sign(data: bytes) -> str:
    """Return a code that only this user can compute (HMAC-SHA-256).

    A file with this code was written by this user, whatever folder it is in. The key is created at
    first use.

    Raises:
        OSError: if the key cannot be read or written.
        RegardError: if there is no place for it; see `cache_folder`.
    """
    return hmac.new(_key(), data, "sha256").hexdigest()


def is_signed(data: bytes, signature: str) -> bool:
    """Return whether `sign` gave this code for the data.

    Raises:
        OSError: if the key cannot be read or written.
        RegardError: if there is no place for it; see `cache_folder`.
    """
    return hmac.compare_digest(sign(data).encode(), signature.encode())


def _key() -> bytes:
    path = cache_folder() / "key"
    with suppress(FileNotFoundError):
        if len(key := path.read_bytes()) == KEY_BYTES:
            return key
        path.unlink()  # empty, as after a power failure: everyone could sign with it
    path.parent.mkdir(parents=True, exist_ok=True)
    temp = path.with_name(f"key.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
    try:
        os.link(temp, path)  # unlike a rename, it does not replace the key of another process
    except FileExistsError:
        pass
    finally:
        temp.unlink()
    return path.read_bytes()
