"""What `regard translate` reads, prints and writes: lines of text, and a file of traces."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO, UnsupportedOperation
from pathlib import Path
from typing import IO, Any, NamedTuple

from regard._support import files
from regard._support.progress import echo_to_stderr
from regard._support.reading import MAX_LINE_BYTES, line_too_long, strip_byte_order_mark
from regard._support.text import escape_control
from regard._support.worker_pool import WorkerPool
from regard.data import input_warnings
from regard.decoding import Translation, TranslationOptions
from regard.errors import RegardError
from regard.runs import (
    Run,
    RunTasks,
    empty_trace,
    load_training_words,
    read_translations,
    translation_items,
)

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # C0, DEL and C1

Alternatives = Translation | Sequence[Translation]
"""One translation of a sentence, or several, best first."""

READ_BYTES = 1 << 16  # per read, at most


def format_lines(translations: Alternatives, is_terminal: bool = False) -> str:
    """Format the translations of one sentence as lines.

    Args:
        translations: one translation, or several.
        is_terminal: whether the lines are for a terminal: then what changes the direction of text
            is escaped, too.

    Returns:
        The text of a single translation; of several, a line `score<tab>text` each.

    Example:
        >>> format_lines(Translation("Le chat dort."))
        'Le chat dort.'
    """
    if isinstance(translations, Translation):
        return _one_line(translations.text, is_terminal)
    return "\n".join(
        f"{each.score:.4f}\t{_one_line(each.text, is_terminal)}" for each in translations
    )


def _one_line(text: str, is_terminal: bool) -> str:
    """Replace control characters that the model may have produced, such as tabs, by spaces."""
    line = CONTROL.sub(" ", " ".join(text.splitlines()))
    return escape_control(line) if is_terminal else line


def warn_of_input(run: Run, sentences: Sequence[str], known: set[str] | None = None) -> None:
    """Warn on stderr of sentences that are unlike the training data; once of each kind.

    Args:
        run: the run that translates.
        sentences: some of the sentences.
        known: kinds that were warned of before; new ones are added.
    """
    known = set() if known is None else known
    max_length = run.settings.data.max_length
    words = load_training_words(run.folder)
    for kind, text in input_warnings(run.tokenizers.source, sentences, max_length, words).items():
        if kind not in known:
            known.add(kind)
            echo_to_stderr(f"warning: {text}")


def clear_traces(path: Path) -> None:
    """Make the file of traces empty.

    Raises:
        RegardError: if it cannot be written.
    """
    files.write_file(path, "")


def append_traces(path: Path, traces: Sequence[str]) -> None:
    """Append traces to a file, one JSON object per line.

    Args:
        path: the file; created if it does not exist.
        traces: traces as JSON.

    Raises:
        RegardError: if the file cannot be written.
    """
    with files.wrap_os_errors(path), path.open("a", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{trace}\n" for trace in traces)


class TranslatedBlock(NamedTuple):
    """Sentences that were read together, their translations, best first, and their traces."""

    sentences: list[str]
    translations: list[list[Translation]]
    traces: list[str]  # as JSON; empty unless asked for


def translate_blocks(
    run: Run,
    pool: WorkerPool,
    blocks: Iterable[list[str]],
    options: TranslationOptions,
    *,
    prefix: str | None = None,
    with_traces: bool = False,
) -> Iterator[TranslatedBlock]:
    """Translate a stream of blocks of sentences, and yield them in order.

    A translation depends on the block that its sentence is in, but not on the workers.

    Args:
        run: the run that translates.
        pool: the workers.
        blocks: the sentences.
        options: how they are translated.
        prefix: what every translation begins with.
        with_traces: whether to trace the best translation of each sentence.
    """
    tasks = RunTasks(run.model, run.tokenizers, pool.is_closing.is_set, run.engine)
    name = run.name if with_traces else None

    def groups() -> Iterator[tuple[tuple[list[str], list[dict[str, Any]]], list[dict[str, Any]]]]:
        warnings, first = set[str](), 0
        for sentences in blocks:
            warn_of_input(run, sentences, warnings)
            prefixes = [prefix] * len(sentences) if prefix else None
            items = translation_items(
                run.model,
                run.tokenizers,
                sentences,
                options,
                prefixes=prefixes,
                first=first,
                traced_as=name,
            )
            yield (sentences, items), items
            first += len(sentences)

    for (sentences, items), results in pool.map_groups(tasks.translate, groups()):
        translations = [[Translation("")] * options.n_best for _ in sentences]
        traces = [] if name is None else [empty_trace(sentence, name) for sentence in sentences]
        for item, result in zip(items, results, strict=True):
            rows = item["batch"].rows
            for row, alternatives in zip(rows, read_translations(result), strict=True):
                translations[row] = alternatives
            for row, trace in zip(rows, result["traces"], strict=name is not None):
                traces[row] = trace
        yield TranslatedBlock(sentences, translations, traces)


def open_stdin() -> IO[bytes]:
    """Return the binary stdin; raise if it is closed. Say what is awaited at a terminal."""
    if sys.stdin is None:
        raise RegardError("there are no sentences to translate, and stdin is closed")
    if sys.stdin.isatty():
        end = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
        echo_to_stderr(f"type one sentence per line; {end} the input")
    return sys.stdin.buffer


def read_available_lines(
    file: IO[bytes] | BytesIO, read_bytes: int = READ_BYTES
) -> Iterator[list[str]]:
    """Yield the complete lines that each read returns, until end of file.

    A program that writes one line and waits gets its answer, and a long file is read block by
    block. Lines end at line feeds alone.

    Raises:
        RegardError: if a line is longer than 1 MiB or is not UTF-8.
    """
    rest, count = b"", 0
    while block := _read(file, read_bytes):
        *complete, rest = (rest + block).split(b"\n")
        if complete:
            yield [_decode(line, count + n) for n, line in enumerate(complete, 1)]
            count += len(complete)
        if len(rest) > MAX_LINE_BYTES:
            raise line_too_long("stdin", count + 1)
    if rest:
        yield [_decode(rest, count + 1)]


def _read(file: IO[bytes] | BytesIO, size: int) -> bytes:
    try:
        return os.read(file.fileno(), size)  # returns what is there, without waiting for more
    except UnsupportedOperation:  # not a real file
        return file.read(size)


def _decode(line: bytes, line_number: int) -> str:
    if line_number == 1:
        line = strip_byte_order_mark(line, "stdin")
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise RegardError(f"stdin must be UTF-8, but line {line_number} is not") from error
