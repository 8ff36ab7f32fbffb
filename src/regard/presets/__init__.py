"""Presets: tested settings as TOML files, to list, show, copy and train with."""

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from regard._support.files import write_file
from regard.errors import RegardError, unknown_name

__all__ = ["copy", "describe", "names", "read", "table", "text"]


def names() -> list[str]:
    """Return the names of all presets, sorted.

    Example:
        >>> "multi30k" in names()
        True
    """
    file_names = (file.name for file in files("regard.presets").iterdir())
    return sorted(name.removesuffix(".toml") for name in file_names if name.endswith(".toml"))


def text(name: str) -> str:
    """Return the TOML text of a preset.

    Raises:
        RegardError: if there is no preset of that name.
    """
    if name not in names():
        raise unknown_name("preset", name, names())
    return files("regard.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")


def read(name: str) -> dict[str, Any]:
    """Return the settings of a preset, for `RunConfig.update`.

    Example:
        >>> read("multi30k")["train"]["optimizer"]
        'muon'
    """
    return tomllib.loads(text(name))


def describe(name: str) -> str:
    """Return the first line of a preset: what it is for."""
    return text(name).splitlines()[0].lstrip("# ")


def table() -> str:
    """Return a line per preset: its name and what it is for."""
    return "\n".join(f"{name:20} {describe(name)}" for name in names())


def copy(name: str, folder: Path) -> Path:
    """Copy a preset into a folder for editing; return the file.

    Raises:
        RegardError: if there is no such preset, or the file exists already.
    """
    path = folder / f"{name}.toml"
    if path.exists():
        raise RegardError(f"{path} exists already; rename it, or copy to another folder")
    write_file(path, text(name))
    return path
