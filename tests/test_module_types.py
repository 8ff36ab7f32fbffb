"""The types that the pages' modules tell in comments, checked by TypeScript."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = [*ROOT.glob("src/regard/*/static/**/*.js")]
OWN = ROOT / ".venv/typescript/node_modules/.bin/tsc"  # where `make test` installs it
VERSION = "5.9"


@pytest.fixture
def tsc():
    """The compiler; where there is none, or one of another version, the test is skipped."""
    found = str(OWN) if OWN.exists() else shutil.which("tsc")
    if found is None or shutil.which("node") is None:
        pytest.skip("TypeScript is not installed: the types of the modules were not checked")
    said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
    version = said.split()[-1]
    if not version.startswith(f"{VERSION}."):
        pytest.skip(
            f"TypeScript {VERSION} is wanted, but {found} is {version}: nothing was checked"
        )
    return found


def test_the_modules_keep_to_the_types_they_tell(tsc):
    ran = subprocess.run([tsc, "--project", ROOT, "--listFiles"], capture_output=True, text=True)
    problems = [line for line in ran.stdout.splitlines() if ": error " in line]
    assert ran.returncode == 0, "\n".join(problems) or ran.stdout
    checked = {Path(line) for line in ran.stdout.splitlines()}
    assert len(MODULES) > 50 and checked.issuperset(MODULES)
