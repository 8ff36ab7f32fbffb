"""Type check of the pages' scripts: JSDoc types, checked by TypeScript."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parent.parent
MODULES = [*ROOT.glob("src/regard/*/static/**/*.js")]
LOCAL_TSC = ROOT / ".venv/typescript/node_modules/.bin/tsc"  # where `make test` installs it
VERSION = "5.9"


@pytest.fixture
def tsc():
    """Path of the TypeScript compiler; skip the test if that version is not installed."""
    path = str(LOCAL_TSC) if LOCAL_TSC.exists() else shutil.which("tsc")
    if path is None or shutil.which("node") is None:
        pytest.skip("TypeScript is not installed: the scripts' types were not checked")
    output = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    version = output.split()[-1]
    if not version.startswith(f"{VERSION}."):
        pytest.skip(f"TypeScript {VERSION} is required, but {path} is {version}: nothing checked")
    return path


def test_scripts_pass_the_type_check(tsc, pytestconfig):
    known = pytestconfig.cache.mkdir("typescript") / f"{VERSION}.tsbuildinfo"  # of unchanged files
    command = [tsc, "--project", ROOT, "--listFiles", "--incremental", "--tsBuildInfoFile", known]
    result = subprocess.run(command, capture_output=True, text=True)
    errors = [line for line in result.stdout.splitlines() if ": error " in line]
    assert result.returncode == 0, "\n".join(errors) or result.stdout
    checked = {Path(line) for line in result.stdout.splitlines()}
    assert len(MODULES) > 50 and checked.issuperset(MODULES)
