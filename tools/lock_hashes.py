"""Write requirements.lock: the versions of constraints.txt with the hashes of their files on PyPI.

    python tools/lock_hashes.py

Run this after a change of constraints.txt. A release has a hash for each of its files, so the lock
fits every platform. torch is left out: its builds for CPU and GPU come from different indexes.
"""

import html
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
CONSTRAINTS, LOCK = ROOT / "constraints.txt", ROOT / "requirements.lock"
INDEX = "https://pypi.org/simple"
LEFT_OUT = ("torch",)
HEADER = """\
# Written by tools/lock_hashes.py from constraints.txt; pip verifies every file that it downloads:
#     pip install --require-hashes --no-deps --only-binary :all: -r requirements.lock
"""


def release_hashes(name: str, version: str) -> list[str]:
    """Return the SHA-256 of every wheel of a release."""
    project = re.sub(r"[-_.]+", "-", name).lower()
    with urlopen(f"{INDEX}/{project}/") as response:
        page = html.unescape(response.read().decode())
    wheel = re.compile(rf"{project.replace('-', '[-_.]+')}-{re.escape(version)}-.*\.whl", re.I)
    links = re.findall(r'href="[^"]*?([^"/]+)#sha256=([0-9a-f]{64})"', page)
    hashes = sorted({digest for file, digest in links if wheel.fullmatch(unquote(file))})
    if not hashes:
        raise SystemExit(f"{name} {version} has no wheel on {INDEX}")
    return hashes


def main() -> None:
    """Write the lock."""
    lines = CONSTRAINTS.read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    pins = [pin for pin in pins if pin[0] not in LEFT_OUT]
    with ThreadPoolExecutor(8) as pool:
        hashes = list(pool.map(release_hashes, *zip(*pins, strict=True)))
    entries = [
        " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{each}" for each in digests)])
        for (name, version), digests in zip(pins, hashes, strict=True)
    ]
    LOCK.write_text(HEADER + "\n".join(entries) + "\n")


if __name__ == "__main__":
    main()
