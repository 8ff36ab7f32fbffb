"""Everything that `watch` captured of a model: records, a table, and a trace."""

from collections import deque
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.capture.call_site import CallSite, ModelCall
from regard.capture.calls import CapturedCall
from regard.capture.hf_tokens import tokens_of_inputs
from regard.capture.layout import PLAIN_AXES, CallAxes
from regard.capture.records import CapturedAttention, Keep, classify, classify_windows
from regard.capture.to_trace import build_trace
from regard.errors import RegardError, unknown_name
from regard.trace import Kind, TokenList, Trace

RECOGNISED = (
    "scaled_dot_product_attention, nn.MultiheadAttention, flex_attention, regard's own attention, "
    "and softmax followed by a product with values"
)

MAX_OPEN_RECORDS = 32  # per call site, that a step may continue: layers that share one module


class Capture:
    """The attention of a model while it was watched: a sequence of `CapturedAttention`.

    `regard.watch` creates and fills it. `len`, iteration and indexing go over the records in the
    order of the calls; `print` shows a table of them.

    Example:
        >>> import torch, regard
        >>> model = regard.MultiHeadAttention(12, heads=3)
        >>> with regard.watch(model) as capture:
        ...     context = model(torch.randn(2, 5, 12))
        >>> capture
        <Capture of MultiHeadAttention: 1 attention call in 1 module>
        >>> capture[0].kind, capture[0].weights.shape
        ('self', torch.Size([2, 3, 5, 5]))
    """

    def __init__(
        self,
        model: str,
        keep: Keep = "auto",
        modules: Sequence[str] = (),
        heads: Sequence[int] | None = None,
        *,
        keep_vectors: bool = False,
    ) -> None:
        self.model = model  # its class
        self.num_functions = 0  # torch functions called
        self._keep, self._patterns, self.keep_vectors = keep, modules, keep_vectors
        self._heads = None if heads is None else list(heads)
        self._records: list[CapturedAttention] = []
        # by module and line: records that a step may continue, latest first, and their number
        self._open: dict[tuple[str, str], deque[CapturedAttention]] = {}
        self._num_calls: dict[tuple[str, str], int] = {}
        self._excluded: dict[str, None] = {}  # names of modules, in order
        self._multiplied: set[tuple[str, frozenset[int]]] = set()
        self._failures: dict[str, str] = {}
        self._values_not_found: dict[str, None] = {}  # softmaxes over positions, by module and line
        self._not_attention: dict[str, None] = {}  # softmaxes over anything else

    def add(
        self,
        site: CallSite,
        call: CapturedCall,
        same_rows: bool | None,
        from_cache: bool = False,
        model_call: ModelCall | None = None,
        axes: CallAxes = PLAIN_AXES,
    ) -> None:
        """Record a call, as the next step or chunk of an earlier one or on its own."""
        if self._patterns and not any(fnmatchcase(site.module_name, p) for p in self._patterns):
            self._excluded[site.module_name] = None
            return
        key = site.module_name, site.location
        if axes.num_windows > 1:
            kind = classify_windows(call, axes, same_rows)
        else:
            kind = classify(call, same_rows, from_cache)
        candidates = self._open.setdefault(key, deque(maxlen=MAX_OPEN_RECORDS))
        if axes.roots and axes.part is None:
            if (site.module_name, axes.roots) in self._multiplied:
                return  # the module multiplied these very weights with other values before
            self._multiplied.add((site.module_name, axes.roots))
        for record in candidates:
            if record.is_followed_by(call, axes):
                record.append_chunk(call, axes, same_rows is not False)
                return
            if record.has_other_part(call, axes):
                record.append_part(call, axes)
                return
            if record.continues(call, kind, model_call) or (
                same_rows and record.continues(call, "causal", model_call)
            ):
                record.append_step(call, model_call)
                candidates.remove(record)
                candidates.appendleft(record)
                return
        record = CapturedAttention(
            name=site.module_name,
            call_site=site.location,
            call=self._num_calls.get(key, 0),
            kind=kind,
            keep=self._keep,
            heads=self._selected_heads(site.module_name, call.shape[1]),
            num_heads=call.shape[1],
            offset=call.offset if kind == "causal" else 0,
            extra_keys=call.extra_keys,
            axes=axes,
            keep_vectors=self.keep_vectors,
        )
        record.append(call, model_call)
        self._records.append(record)
        candidates.appendleft(record)
        self._num_calls[key] = record.call + 1

    def remove(self, roots: frozenset[int]) -> list[int]:
        """Remove the records of some softmaxes; return the indices that they had."""
        found = [n for n, record in enumerate(self._records) if record.axes.roots == roots]
        for n in reversed(found):
            record = self._records.pop(n)
            key = record.name, record.call_site
            self._num_calls[key] -= 1
            others = (other for other in self._open[key] if other is not record)
            self._open[key] = deque(others, maxlen=MAX_OPEN_RECORDS)
        return found

    def record_failure(self, site: CallSite, reason: str) -> None:
        """Note that a module called attention that could not be captured."""
        self._failures[f"{site.module_name} ({site.location})"] = reason

    def record_module(self, name: str, reason: str) -> None:
        """Note that a module ran where its attention cannot be seen; its parts are not listed."""
        listed = [module for module, known in self._failures.items() if known == reason]
        if not any(name == module or name.startswith(f"{module}.") for module in listed):
            self._failures[name] = reason

    def record_softmax(self, site: CallSite, is_over_positions: bool) -> None:
        """Note a softmax that did not become attention."""
        if self._patterns and not any(fnmatchcase(site.module_name, p) for p in self._patterns):
            return
        listed = self._values_not_found if is_over_positions else self._not_attention
        listed[f"{site.module_name} ({site.location})"] = None

    def close(self) -> None:
        """Drop the state used to recognise generation steps."""
        self._open.clear()
        for record in self:
            record.release()

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[CapturedAttention]:
        return iter(self._records)

    def __getitem__(self, index: int) -> CapturedAttention:
        return self._records[index]

    @property
    def module_names(self) -> tuple[str, ...]:
        """The modules that called attention, in order, without duplicates."""
        return tuple(dict.fromkeys(record.name for record in self))

    @property
    def failures(self) -> tuple[str, ...]:
        """What was seen but could not be captured: module, line and reason of each."""
        return tuple(f"{site}: {reason}" for site, reason in self._failures.items())

    @property
    def values_not_found(self) -> tuple[str, ...]:
        """Softmaxes over positions that were not followed to values: module and line of each."""
        return tuple(self._values_not_found)

    @property
    def not_attention(self) -> tuple[str, ...]:
        """Softmaxes over experts, codebooks, features or classes: module and line of each."""
        return tuple(self._not_attention)

    def weights(self, name: str, call: int = 0, kind: Kind | None = None) -> Tensor:
        """Return the weights of a module.

        Args:
            name: of the module, one of `module_names`.
            call: index of the call, if the module was called more than once.
            kind: "self", "causal" or "cross", if the module computes several.

        Returns:
            Weights (batch, head, query, key).

        Raises:
            RegardError: if there is no such module or call, or its weights were summarized.
        """
        for record in self:
            if record.name == name and record.call == call and kind in (None, record.kind):
                if record.weights is None:
                    raise RegardError(
                        f"the weights of {name} were summarized; keep='all' keeps them in full"
                    )
                return record.weights
        self.check()
        if name not in self.module_names:
            raise unknown_name("captured module", name, self.module_names)
        raise RegardError(f"{name} was captured, but has no call {call}")

    def check(self) -> None:
        """Raise a `RegardError` that explains why, if nothing was captured."""
        if not self._records:
            raise RegardError(self._explain_nothing())

    def trace(
        self,
        source: TokenList | Sequence[str] | None = None,
        target: TokenList | Sequence[str] | None = None,
        *,
        written: TokenList | Sequence[str] | None = None,
        tokenizer: Any = None,
        inputs: Any = None,
        batch_index: int = 0,
        call: int | None = None,
        title: str = "",
        gold: Sequence[tuple[int, int]] | None = None,
    ) -> Trace:
        """Return one batch item as a trace, which can be drawn, analysed and saved.

        Axes are labelled with tokens: given as lists, or taken from the inputs of a Hugging Face
        model and its tokenizer. Without them, with positions.

        Args:
            source: its tokens as the model received them; the text, if there is only one. Tokens
                that are not given are numbered.
            target: the tokens that a decoder received. If it predicts the next token, they become
                the list "decoder_input", and rows of cross-attention are named by the tokens
                written there, the list "target".
            written: the tokens that the decoder wrote, one for each that it received. By default
                the received ones shifted by one; what was written last is then unknown, "…".
            tokenizer: a tokenizer of transformers, instead of `source` and `target`.
            inputs: with it, what the model was called with: the tokenizer's output, and
                `decoder_input_ids` or `labels` of a decoder; `labels` are the tokens written.
            batch_index: which item of the batch.
            call: index of the call of each module; all by default.
            title: for pictures.
            gold: reference alignment, as (source word, target word).

        Returns:
            The trace.

        Raises:
            RegardError: if nothing was captured, the tokens are not as many as the model's, or
                `tokenizer` and `inputs` are not given together.

        Example:
            >>> import torch, regard
            >>> model = regard.MultiHeadAttention(12, heads=3)
            >>> with regard.watch(model) as capture:
            ...     context = model(torch.randn(2, 3, 12))
            >>> capture.trace(["the", "old", "cat"], batch_index=1).tokens["text"].pieces
            ('the', 'old', 'cat')
        """
        self.check()
        if (tokenizer is None) != (inputs is None):
            raise RegardError("tokenizer and inputs must be given together")
        if tokenizer is not None:
            if source is not None or target is not None or written is not None:
                raise RegardError("give either tokens, or a tokenizer and inputs")
            source, target, written = tokens_of_inputs(tokenizer, inputs, batch_index)
        records = [record for record in self if call in (None, record.call)]
        if not records:
            raise RegardError(f"no module has a call {call}")
        return build_trace(records, source, target, written, batch_index, title, self.model, gold)

    def save(
        self,
        path: Path | str,
        source: TokenList | Sequence[str] | None = None,
        target: TokenList | Sequence[str] | None = None,
    ) -> None:
        """Write the trace of the first batch item to a file; see `trace`."""
        self.trace(source, target).save(path)

    def __str__(self) -> str:
        if not self._records:
            return self._explain_nothing()
        header = ("module", "call site", "kind", "heads", "queries × keys", "calls", "storage")
        rows = [header, *self._table_rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows
        ]
        if self._excluded:
            count = _plural(len(self._excluded), "module")
            lines.append(f"not kept: {count} outside modules={', '.join(self._patterns)!r}")
        return "\n".join(line.rstrip() for line in [*lines, *self._failure_lines()])

    def __repr__(self) -> str:
        calls = _plural(len(self), "attention call")
        return f"<Capture of {self.model}: {calls} in {_plural(len(self.module_names), 'module')}>"

    def _table_rows(self) -> list[tuple[str, ...]]:
        """Return one row per module, line, kind and size; calls that share one are counted."""
        steps: dict[tuple[str, ...], list[int]] = {}
        for record in self:
            size = f"{record.num_queries} × {record.num_keys}"
            if record.num_windows > 1:
                size += f" in {record.num_windows} windows"
            about = (record.name, record.call_site, record.kind, str(record.num_heads), size)
            steps.setdefault((*about, record.storage + _notes(record)), []).append(record.steps)
        return [
            (*about, _format_calls(counts), storage) for (*about, storage), counts in steps.items()
        ]

    def _failure_lines(self) -> list[str]:
        return [
            *(f"not captured: {failure}" for failure in self.failures),
            *(f"softmax seen, values not found: {site}" for site in self.values_not_found),
            *(f"not attention over positions: {site}" for site in self.not_attention),
        ]

    def _explain_nothing(self) -> str:
        if self._failures or self._values_not_found:
            return "\n".join(self._failure_lines())
        if not self.num_functions:
            return (
                f"nothing was captured: {self.model} was not called inside `with watch(...)`, "
                "or only in another thread"
            )
        if self._excluded:
            names = ", ".join(self._excluded)
            return f"nothing was kept: modules={', '.join(self._patterns)!r} excludes {names}"
        return (
            f"no attention was found in {self.model}; recognised are {RECOGNISED}. "
            "TorchScript and kernels of other packages are not; regard.recover_weights returns the "
            "weights of any function that is linear in its values"
        )

    def _selected_heads(self, name: str, num_heads: int) -> list[int]:
        heads = list(range(num_heads)) if self._heads is None else self._heads
        if not all(0 <= head < num_heads for head in heads):
            raise RegardError(
                f"heads must be indices from 0 to {num_heads - 1} for {name}, but they are {heads}"
            )
        return heads


def _format_calls(steps: list[int]) -> str:
    """Format the number of calls, with that of their steps if there were several."""
    total = sum(steps)
    return str(len(steps)) if total == len(steps) else f"{len(steps)} ({total} steps)"


def _notes(record: CapturedAttention) -> str:
    """Return what is unusual about weights: their normaliser, what was applied, doubts."""
    notes = [] if record.normaliser == "softmax" else [f"normaliser: {record.normaliser}"]
    notes += [f"applied: {', '.join(record.applied)}"] if record.applied else []
    notes += [f"uncertain axis: {', '.join(record.uncertain)}"] if record.uncertain else []
    notes += ["no vectors"] if record.keep_vectors and record.vectors is None else []
    return "".join(f"; {note}" for note in notes)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
