"""Everything that `watch` captured of a model: records, a table, and a trace."""

from collections import deque
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.capture.call_site import CallSite, ModelCall
from regard.capture.capture_table import plural, table_lines
from regard.capture.hf_tokens import tokens_of_inputs
from regard.capture.layout import CallAxes
from regard.capture.omissions import Omissions
from regard.capture.recognised import RecognisedAttention
from regard.capture.records import CapturedAttention, Keep, classify, classify_windows
from regard.capture.to_trace import build_trace
from regard.errors import RegardError, unknown_name
from regard.trace import Kind, TokenList, Trace

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
        self.omissions = Omissions()  # what was seen and is not among the records
        self._keep, self._patterns, self.keep_vectors = keep, modules, keep_vectors
        self._heads = None if heads is None else list(heads)
        self._records: list[CapturedAttention] = []
        # by module and line: records that a step may continue, latest first, and their number
        self._open: dict[tuple[str, str], deque[CapturedAttention]] = {}
        self._num_calls: dict[tuple[str, str], int] = {}
        # by module and softmaxes: the weights that were multiplied with values
        self._multiplied: dict[tuple[str, frozenset[int]], list[CallAxes]] = {}

    def add(self, attention: RecognisedAttention, model_call: ModelCall | None = None) -> None:
        """Record a call, as the next step or chunk of an earlier one or on its own.

        Args:
            attention: the call.
            model_call: the call of the model that it belongs to, if it may be a generation step.
        """
        name, axes = attention.site.module_name, attention.axes
        if not self._selects(name):
            self.omissions.excluded[name] = None
            return
        if axes.roots:
            known = self._multiplied.setdefault((name, axes.roots), [])
            if any(axes.are_within(others) for others in known):
                return  # the module multiplied these very weights with other values before
            is_part = bool(known) and self._append_part(attention)
            known.append(axes)
            if is_part:
                return
        candidates = self._open.setdefault(_key(attention), deque(maxlen=MAX_OPEN_RECORDS))
        if not _continue_record(candidates, attention, model_call):
            record = self._new_record(attention)
            record.append(attention.call, model_call)
            self._records.append(record)
            candidates.appendleft(record)
            self._num_calls[_key(attention)] = record.call + 1

    def _append_part(self, attention: RecognisedAttention) -> bool:
        """Append a call to the record of other parts of its softmax; False if there is none."""
        name, axes = attention.site.module_name, attention.axes
        same_rows = attention.same_rows is not False
        return any(
            record.append_part(attention.call, axes, same_rows)
            or record.append_window_part(attention.call, axes)
            for record in reversed(self._records)
            if record.name == name and record.axes.roots == axes.roots
        )

    def _new_record(self, attention: RecognisedAttention) -> CapturedAttention:
        call, key, kind = attention.call, _key(attention), _kind(attention)
        return CapturedAttention(
            *key,
            call=self._num_calls.get(key, 0),
            kind=kind,
            keep=self._keep,
            heads=self._selected_heads(attention.site.module_name, call.shape[1]),
            num_heads=call.shape[1],
            offset=call.offset if kind == "causal" else 0,
            extra_keys=call.extra_keys,
            axes=attention.axes,
            keep_vectors=self.keep_vectors,
        )

    def remove(self, roots: frozenset[int]) -> list[int]:
        """Remove the records of some softmaxes; return the indices that they had."""
        found = [n for n, record in enumerate(self._records) if record.axes.roots == roots]
        self._multiplied = {key: x for key, x in self._multiplied.items() if key[1] != roots}
        for n in reversed(found):
            record = self._records.pop(n)
            key = record.name, record.call_site
            self._num_calls[key] -= 1
            others = (other for other in self._open[key] if other is not record)
            self._open[key] = deque(others, maxlen=MAX_OPEN_RECORDS)
        return found

    def record_softmax(self, site: CallSite, is_over_positions: bool) -> None:
        """Note a softmax that did not become attention."""
        if self._selects(site.module_name):
            self.omissions.add_softmax(site, is_over_positions)

    def close(self) -> None:
        """Drop the state used to recognise generation steps."""
        self._open.clear()
        self._multiplied.clear()
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
        return tuple(f"{site}: {reason}" for site, reason in self.omissions.failures.items())

    @property
    def values_not_found(self) -> tuple[str, ...]:
        """Softmaxes over positions that were not followed to values: module and line of each."""
        return tuple(self.omissions.values_not_found)

    @property
    def not_attention(self) -> tuple[str, ...]:
        """Softmaxes over experts, codebooks, features or classes: module and line of each."""
        return tuple(self.omissions.not_attention)

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
        modules: str | Sequence[str] | None = None,
        title: str = "",
        gold: Sequence[tuple[int, int]] | None = None,
    ) -> Trace:
        """Return one batch item as a trace, which can be drawn, analysed and saved.

        Axes are labelled with tokens: given as lists, or taken from the inputs of a Hugging Face
        model and its tokenizer. Without them, with positions: layers of other lengths than the
        first have lists of their own, such as "text of 49". Windows that cannot be put back to the
        positions of the text are left out, with a warning that names their modules.

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
            modules: names or patterns such as "decoder.*"; all by default.
            title: for pictures.
            gold: reference alignment, as (source word, target word).

        Returns:
            The trace.

        Raises:
            RegardError: if nothing was captured or all is left out, the tokens are not as many as
                the model's in all layers, or `tokenizer` and `inputs` are not given together.

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
        selected = self._named(modules)
        records = [record for record in selected if call in (None, record.call)]
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
        lines = table_lines(self)
        if excluded := self.omissions.excluded:
            modules = plural(len(excluded), "module")
            lines.append(f"not kept: {modules} outside modules={', '.join(self._patterns)!r}")
        return "\n".join(line.rstrip() for line in [*lines, *self.omissions.lines()])

    def __repr__(self) -> str:
        calls = plural(len(self), "attention call")
        return f"<Capture of {self.model}: {calls} in {plural(len(self.module_names), 'module')}>"

    def _explain_nothing(self) -> str:
        patterns = ", ".join(self._patterns)
        return self.omissions.explain_nothing(self.model, patterns, has_run=self.num_functions > 0)

    def _named(self, modules: str | Sequence[str] | None) -> list[CapturedAttention]:
        """Return the records of some modules, by name or pattern."""
        patterns = (modules,) if isinstance(modules, str) else modules
        if patterns is None:
            return self._records
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in self.module_names):
                raise unknown_name("captured module", pattern, self.module_names)
        return [x for x in self if any(fnmatchcase(x.name, pattern) for pattern in patterns)]

    def _selects(self, name: str) -> bool:
        """Return whether a module is to be captured."""
        return not self._patterns or any(fnmatchcase(name, x) for x in self._patterns)

    def _selected_heads(self, name: str, num_heads: int) -> list[int]:
        heads = list(range(num_heads)) if self._heads is None else self._heads
        if not all(0 <= head < num_heads for head in heads):
            raise RegardError(
                f"heads must be indices from 0 to {num_heads - 1} for {name}, but they are {heads}"
            )
        return heads


def _key(attention: RecognisedAttention) -> tuple[str, str]:
    """Return the module and line of a call."""
    return attention.site.module_name, attention.site.location


def _kind(attention: RecognisedAttention) -> Kind:
    call, same_rows = attention.call, attention.same_rows
    if attention.axes.num_windows > 1:
        return classify_windows(call, attention.axes, same_rows)
    return classify(call, same_rows, attention.from_cache, attention.axes.leading_keys)


def _continue_record(
    candidates: deque[CapturedAttention],
    attention: RecognisedAttention,
    model_call: ModelCall | None,
) -> bool:
    """Append a call to the record that it continues; return whether there is one."""
    call, axes, same_rows = attention.call, attention.axes, attention.same_rows
    kind = _kind(attention)
    for record in candidates:
        if record.is_followed_by(call, axes):
            record.append_chunk(call, axes, same_rows is not False)
            return True
        if record.continues(call, kind, model_call) or (
            same_rows and record.continues(call, "causal", model_call)
        ):
            record.append_step(call, model_call)
            candidates.remove(record)
            candidates.appendleft(record)
            return True
    return False
