"""Everything that `watch` captured of a model: records, a table, and a trace."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from regard._support.text import count
from regard.capture.call_site import matches_name
from regard.capture.capture_table import record_table
from regard.capture.diagnostics import Diagnostics
from regard.capture.hf_tokens import tokens_of_inputs
from regard.capture.records import CapturedAttention
from regard.capture.to_trace import build_trace
from regard.errors import RegardError, unknown_name
from regard.trace import Kind, TokenList, Trace


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
        self, model: str, records: list[CapturedAttention], diagnostics: Diagnostics
    ) -> None:
        self.model = model  # its class
        self.diagnostics = diagnostics  # what was seen and is not among the records
        self._records = records

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
        return tuple(f"{site}: {reason}" for site, reason in self.diagnostics.failures.items())

    @property
    def values_not_found(self) -> tuple[str, ...]:
        """Softmaxes over positions that were not followed to values: module and line of each."""
        return tuple(self.diagnostics.values_not_found)

    @property
    def not_attention(self) -> tuple[str, ...]:
        """Softmaxes over experts, codebooks, features or classes: module and line of each."""
        return tuple(self.diagnostics.not_attention)

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
            raise RegardError(self.diagnostics.explain_nothing())

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
            return self.diagnostics.explain_nothing()
        return "\n".join([record_table(self), *self.diagnostics.lines()])

    def __repr__(self) -> str:
        calls = count(len(self), "attention call")
        return f"<Capture of {self.model}: {calls} in {count(len(self.module_names), 'module')}>"

    def _named(self, modules: str | Sequence[str] | None) -> list[CapturedAttention]:
        """Return the records of some modules, by name or pattern."""
        patterns = (modules,) if isinstance(modules, str) else modules
        if patterns is None:
            return self._records
        for pattern in patterns:
            if not any(matches_name(name, pattern) for name in self.module_names):
                raise unknown_name("captured module", pattern, self.module_names)
        return [x for x in self if any(matches_name(x.name, pattern) for pattern in patterns)]
