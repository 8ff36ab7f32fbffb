"""Generate the data files of the phrasebook that the package embeds.

    python tools/phrasebook/generate.py --out src/regard/data/phrasebook

The same arguments give the same bytes. `regard.data.phrasebook` describes the format.
"""

import argparse
import gzip
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path

from grammar.corpus import generate_pairs
from regard.data.phrasebook import LANGUAGES, SIZE, WORD_JOINT, AlignedPair

EMBEDDED = Path(__file__).parents[2] / "src" / "regard" / "data" / "phrasebook"


def main() -> None:
    """Write three files for each language: English words, translated words, links."""
    parser = argparse.ArgumentParser(description="Generate the phrasebook's data files.")
    parser.add_argument("--out", type=Path, default=EMBEDDED, help="folder to write to")
    parser.add_argument("--pairs", type=int, default=SIZE, help="number of pairs per language")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random generator")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        pairs = generate_pairs(language, options.pairs, options.seed)
        for name, content in data_files(language, pairs).items():
            (options.out / name).write_bytes(content)
            print(f"{options.out / name}: {len(content):,} bytes")


def data_files(language: str, pairs: Sequence[AlignedPair]) -> dict[str, bytes]:
    """Return the compressed files of a language by name."""
    columns = {
        "en": (_mark_joints(pair.source, pair.source_words) for pair in pairs),
        language: (_mark_joints(pair.target, pair.target_words) for pair in pairs),
        "links": (" ".join(f"{i}-{j}" for i, j in pair.links) for pair in pairs),
    }
    return {f"en-{language}.{name}.gz": _compress(lines) for name, lines in columns.items()}


def _mark_joints(text: str, words: Iterable[str]) -> str:
    """Insert a joint wherever two words meet without a space."""
    marked, position = "", 0
    for word in words:
        start = text.index(word, position)
        gap = text[position:start] or (WORD_JOINT if marked else "")
        marked += gap + word
        position = start + len(word)
    return marked


def _compress(lines: Iterable[str]) -> bytes:
    """Compress without a time stamp; `gzip.compress` writes other headers in other Pythons."""
    buffer = BytesIO()
    with gzip.GzipFile("", "wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    return buffer.getvalue()


if __name__ == "__main__":
    main()
