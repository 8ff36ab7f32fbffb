"""Every package that an installation contains is pinned."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(each.name): each for each in requirements}


def installed_closure(requirements):
    """Return the versions of all direct and indirect requirements that are installed."""
    versions, queue, visited = {}, [Requirement(each) for each in requirements], set()
    while queue:
        requirement = queue.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in visited:
            continue
        visited.add(key)
        if key[0] == "regard":
            queue += [Requirement(each) for extra in key[1] for each in EXTRAS[extra]]
            continue
        try:
            distribution = metadata.distribution(requirement.name)
        except metadata.PackageNotFoundError:  # for another platform, or another extra
            continue
        versions[key[0]] = distribution.version.partition("+")[0]
        queue += [
            each
            for each in map(Requirement, distribution.requires or [])
            if each.marker is None
            or any(each.marker.evaluate({"extra": extra}) for extra in {"", *key[1]})
        ]
    return versions


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_constraints_pin_every_package_that_an_extra_installs(extra):
    requirements = EXTRAS[extra] if extra else []
    versions = installed_closure([*PROJECT["dependencies"], *requirements])
    assert len(versions) > 20
    assert sorted(set(versions) - set(pins())) == []


def test_constraints_are_exact_and_sorted():
    names = list(pins())
    assert names == sorted(names)
    for requirement in pins().values():
        assert [spec.operator for spec in requirement.specifier] == ["=="]


def test_lock_has_hashes_of_every_pin_but_torch():
    entries = (ROOT / "requirements.lock").read_text().replace(" \\\n    ", " ").splitlines()
    locked = [entry.split() for entry in entries if not entry.startswith("#")]
    expected = [str(pin) for name, pin in pins().items() if name != "torch"]
    assert [requirement for requirement, *_ in locked] == expected
    for _, *hashes in locked:
        assert hashes
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes)


def test_actions_are_pinned_by_commit():
    workflows = [*(ROOT / ".github" / "workflows").glob("*.yml")]
    assert workflows
    for workflow in workflows:
        uses = re.findall(r"uses: (\S+)", workflow.read_text())
        assert uses
        for action in uses:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)
