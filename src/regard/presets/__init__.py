"""Settings that are known to work, as files to list, show and copy."""

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from regard._support import files as safe
from regard.errors import RegardError, unknown_name


def names() -> list[str]:
    """List the presets."""
    found = (file.name for file in files("regard.presets").iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


def text(name: str) -> str:
    """Give a preset as it is written."""
    if name not in names():
        raise unknown_name("preset", name, names())
    return files("regard.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")


def read(name: str) -> dict[str, Any]:
    """Give the settings of a preset."""
    return tomllib.loads(text(name))


def about(name: str) -> str:
    """Give the first line of a preset: what it is for."""
    return text(name).splitlines()[0].lstrip("# ")


def listing() -> str:
    """List all presets, and what each is for."""
    return "\n".join(f"{name:20} {about(name)}" for name in names())


def copy(name: str, folder: Path) -> Path:
    """Copy a preset, to be changed; nothing is overwritten."""
    path = folder / f"{name}.toml"
    if path.exists():
        raise RegardError(f"{path} exists already; rename it, or copy to another folder")
    safe.write_file(path, text(name))
    return path
