"""The user's cache folder, and a secret key that authenticates the user's own files."""

import hmac
import os
import secrets
from pathlib import Path

KEY_BYTES = 32


def cache_folder() -> Path:
    """Return the folder of caches: `regard` under $XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "regard"


def sign(data: bytes) -> str:
    """Return a code that only this user can compute (HMAC-SHA-256).

    A file with this code was written by this user, whatever folder it is in. The key is created at
    first use.

    Raises:
        OSError: if the key cannot be read or written.
    """
    return hmac.new(_key(), data, "sha256").hexdigest()


def is_signed(data: bytes, signature: str) -> bool:
    """Return whether `sign` gave this code for the data.

    Raises:
        OSError: if the key cannot be read or written.
    """
    return hmac.compare_digest(sign(data).encode(), signature.encode())


def _key() -> bytes:
    path = cache_folder() / "key"
    try:
        return path.read_bytes()
    except FileNotFoundError:
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
