"""Optional dependencies: a missing one is named in one line, with the extra that installs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from regard.errors import RegardError

PACKAGES = {
    "pictures": {"matplotlib"},
    "gallery": {"matplotlib", "pygments", "sklearn"},
    "fast": {"ctranslate2"},
    "explorer": {"anyio", "fastapi", "pydantic", "starlette", "uvicorn"},
    "serve": {"anyio", "fastapi", "prometheus_client", "pydantic", "starlette", "uvicorn"},
    "onnx": {"onnx", "onnxscript"},
    "hf": {"transformers"},
    "notebook": {"anywidget", "traitlets"},
}
"""The packages that each extra of pyproject.toml installs, by the name they are imported with."""


class MissingExtraError(RegardError, ImportError):
    """Raised when an optional dependency is used that is not installed."""


@contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """Turn the failed import of an extra's package into an error that names the extra.

    Args:
        extra: a key of `PACKAGES`.
        purpose: what the package is for, with its verb: "figures need".

    Raises:
        MissingExtraError: if a package of the extra is not installed.

    Example:
        >>> with needs_extra("pictures", "figures need"):
        ...     raise ModuleNotFoundError(name="matplotlib.figure")
        Traceback (most recent call last):
        regard._support.extras.MissingExtraError: figures need matplotlib, which is not installed: \
pip install 'regard[pictures]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in PACKAGES[extra]:
            raise
        raise MissingExtraError(
            f"{purpose} {package}, which is not installed: pip install 'regard[{extra}]'"
        ) from error


def missing_packages(extra: str) -> list[str]:
    """Return the packages of an extra that are not installed, sorted."""
    return sorted(name for name in PACKAGES[extra] if find_spec(name) is None)
