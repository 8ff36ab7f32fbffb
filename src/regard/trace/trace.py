"""The trace, which holds attention maps and the token lists of their axes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard._support import text
from regard.errors import RegardError, unknown_name
from regard.trace import value_checks
from regard.trace.attention_map import KINDS, AttentionMap, Kind, TokenList
from regard.trace.image import PatchImage, check_images

if TYPE_CHECKING:
    import matplotlib.figure

Rows = Literal["output", "input"]
"""Which token names a row of a decoder: the one written at that step, or the one read."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Trace:
    """Where a model attended on one input: attention maps, and the token lists of their axes.

    Args:
        tokens: token lists by name. Of a translation: "source", what the encoder reads; "target",
            what the decoder writes; "decoder_input", what it reads: the start token and the target.
        maps: attention maps in the order in which they were computed.
        title: what was read, for captions: "source → translation" of a translation.
        model: what computed it, for captions.
        gold: links (source word, target word) of a reference alignment between the token lists
            "source" and "target", if known.
        images: images by the name of the token list that their patches are, if there are any.

    Raises:
        RegardError: if a map or an image names a token list that is missing or of another length.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace(["a", "b"], ["x"], cross=[[[[0.25, 0.75]]]])
        >>> [(m.name, m.kind, m.shape) for m in trace.maps]
        [('cross.0', 'cross', (1, 1, 2))]
        >>> trace
        <Trace: 1 cross map; tokens: 2 source, 1 target>
    """

    tokens: Mapping[str, TokenList]
    maps: tuple[AttentionMap, ...]
    title: str = ""
    model: str = ""
    gold: tuple[tuple[int, int], ...] | None = None
    images: Mapping[str, PatchImage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for attention_map in self.maps:
            for axis, count in zip(("queries", "keys"), attention_map.shape[1:], strict=True):
                _check_axis(attention_map, axis, count, self.tokens)
            if attention_map.query_inputs is not None:
                _check_axis(attention_map, "query_inputs", attention_map.shape[1], self.tokens)
        if self.gold is not None:
            _check_gold(self.gold, self.tokens)
        check_images(self.images, self.tokens)

    def __repr__(self) -> str:
        """Return a line: title and model, how many maps of each kind, and tokens of each list."""
        kinds = Counter(attention_map.kind for attention_map in self.maps)
        maps = ", ".join(text.count(number, f"{kind} map") for kind, number in kinds.items())
        tokens = ", ".join(f"{len(tokens)} {name}" for name, tokens in self.tokens.items())
        title = f" {text.shorten(self.title)}" if self.title else ""
        model = f" of {self.model}" if self.model else ""
        return f"<Trace{title}{model}: {maps or 'no maps'}; tokens: {tokens}>"

    def layers(self, kind: Kind, queries: str | None = None) -> tuple[AttentionMap, ...]:
        """Return the maps of one kind, in order.

        Args:
            kind: "self", "causal" or "cross".
            queries: only maps whose rows are of this token list.

        Returns:
            The maps, one for each layer.

        Raises:
            RegardError: if there is no such kind.

        Example:
            >>> from regard.trace import build_translation_trace
            >>> eye = [[[1.0, 0.0], [0.0, 1.0]]]
            >>> trace = build_translation_trace(["the", "cat"], ["le", "chat"], cross=[eye, eye])
            >>> [layer.name for layer in trace.layers("cross")]
            ['cross.0', 'cross.1']
        """
        if kind not in KINDS:  # an encoder's attention is of the kind "self"
            raise unknown_name("kind of attention", kind, KINDS)
        return tuple(m for m in self.maps if m.kind == kind and queries in (None, m.queries))

    def row_tokens(self, attention_map: AttentionMap, rows: Rows = "output") -> TokenList:
        """Return the tokens that name the rows of a map.

        Args:
            attention_map: a map of this trace.
            rows: "output" names a row of a decoder's cross-attention by the token written there,
                "input" by the token read there. Other maps have one naming only.

        Raises:
            RegardError: if `rows` is neither.

        Example:
            >>> from regard.trace import build_translation_trace
            >>> trace = build_translation_trace(
            ...     ["the", "cat"], ["chat", "</s>"], decoder_input=["<s>", "chat"],
            ...     cross=[[[[0.1, 0.9], [0.5, 0.5]]]],
            ... )
            >>> trace.row_tokens(trace.maps[0]).pieces
            ('chat', '</s>')
            >>> trace.row_tokens(trace.maps[0], "input").pieces
            ('<s>', 'chat')
        """
        value_checks.check_rows(rows)
        name = attention_map.query_inputs if rows == "input" else None
        return self.tokens[attention_map.queries if name is None else name]

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as a JSON-serializable dict, in the format of `regard.trace`.

        Returns:
            What `from_dict` reads; `json.dumps` of it is the content of a trace file.

        Example:
            >>> from regard.trace import build_translation_trace
            >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
            >>> trace.to_dict()["tokens"]["target"]["pieces"]
            ['chat']
        """
        from regard.trace.serialization import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, record: Any) -> "Trace":
        """Build a trace from what `to_dict` returned.

        Args:
            record: the dict, as `json.loads` returns it.

        Returns:
            The trace.

        Raises:
            RegardError: if it is malformed, or of another format version.

        Example:
            >>> from regard.trace import build_translation_trace
            >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
            >>> Trace.from_dict(trace.to_dict()).tokens == trace.tokens
            True
        """
        from regard.trace.serialization import from_dict

        return from_dict(record)

    def to_json(self) -> str:
        """Return the trace as JSON.

        Returns:
            One line, the content of a trace file.

        Example:
            >>> from regard.trace import build_translation_trace
            >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
            >>> import json
            >>> list(json.loads(trace.to_json())["tokens"])
            ['source', 'target']
        """
        from regard.trace.serialization import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "Trace":
        """Build a trace from JSON.

        Args:
            text: what `to_json` returned, or the content of a trace file.

        Returns:
            The trace.

        Raises:
            RegardError: if it is malformed, or of another format version.

        Example:
            >>> from regard.trace import build_translation_trace
            >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
            >>> Trace.from_json(trace.to_json()).maps[0].weights.tolist()
            [[[0.25, 0.75]]]
        """
        from regard.trace.serialization import from_json

        return from_json(text)

    def save(self, path: Path | str) -> None:
        """Write the trace to a file, which `regard.load_trace` reads.

        Args:
            path: the file; compressed with gzip if its name ends in .gz.

        Raises:
            RegardError: if it cannot be written.

        Example:
            >>> from regard.trace import build_translation_trace
            >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
            >>> trace.save("cat.json.gz")
            >>> from regard.trace import load_trace
            >>> load_trace("cat.json.gz").tokens["target"].pieces
            ('chat',)
        """
        from regard.trace.serialization import save_trace

        save_trace(self, Path(path))

    def show(
        self,
        *,
        kind: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        rows: Rows = "output",
    ) -> None:
        """Show the trace: an interactive view in a notebook, one head as printed text elsewhere.

        Args:
            kind: "encoder", "decoder", "cross", …; by default cross-attention, else the first.
            layer: layer within that attention; -1 is the last. By default that of the head.
            head: index of a head; by default the one that `analysis.select_head` selects.
            rows: "output" names rows of a decoder's cross-attention by the word written there,
                "input" by the word read there.

        Raises:
            RegardError: if there is no such head.

        Example:
            >>> from regard.trace import build_translation_trace
            >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
            >>> trace.show()
            Cross-attention · layer 0, head 0
            <BLANKLINE>
            writing ↓  reading →
                    the      cat
            chat  0.25 ::  0.75 xx
            <BLANKLINE>
                 0 [ .:-=+*x#@] 1
        """
        from regard.viz import show

        show(self, kind=kind, layer=layer, head=head, rows=rows)

    def plot(
        self,
        kind: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        *,
        rows: Rows = "output",
        vmax: float | None = None,
    ) -> "matplotlib.figure.Figure":
        """Plot one head with matplotlib; `regard.viz` has figures of layers and of all heads.

        Args:
            kind: "encoder", "decoder", "cross", …; by default cross-attention, else the first.
            layer: layer within that attention; -1 is the last. By default that of the head.
            head: index of a head; by default the one that `analysis.select_head` selects.
            rows: "output" names rows of a decoder's cross-attention by the word written there,
                "input" by the word read there.
            vmax: weight at the end of the colour scale; by default 1, or the largest weight if
                that is below 0.5.

        Returns:
            A figure, which a notebook displays and `savefig` writes.

        Raises:
            RegardError: if there is no such head, or matplotlib is not installed.

        Example:
            >>> from regard.trace import build_translation_trace
            >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
            >>> [label.get_text() for label in trace.plot("cross").axes[0].get_yticklabels()]
            ['chat']
        """
        from regard.viz import plot_head

        return plot_head(self, kind, layer, head, rows=rows, vmax=vmax)

    def save_page(
        self,
        path: Path | str,
        *,
        kind: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        rows: Rows = "output",
    ) -> None:
        """Write an interactive HTML page with every head, which works without a network.

        Args:
            path: the file, such as "look.html".
            kind: attention that the page opens at; by default cross-attention, else the first.
            layer: layer within that attention; -1 is the last. By default that of the head.
            head: index of a head; by default the one that `analysis.select_head` selects.
            rows: "output" names rows of a decoder's cross-attention by the word written there,
                "input" by the word read there.

        Raises:
            RegardError: if there is no such head, or writing fails.

        Example:
            >>> from regard.trace import build_translation_trace
            >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
            >>> trace.save_page("look.html")
            >>> Path("look.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
            True
        """
        from regard.viz import save_page

        save_page(self, path, kind, layer, head, rows=rows)


def _check_axis(
    attention_map: AttentionMap, axis: str, expected: int, tokens: Mapping[str, TokenList]
) -> None:
    """Raise unless the token list of an axis is there and has the right length."""
    list_name = getattr(attention_map, axis)
    if list_name not in tokens:
        known = ", ".join(map(repr, tokens))
        raise RegardError(
            f"{axis} of {attention_map.name} are {list_name!r}, but the token lists are {known}"
        )
    actual = len(tokens[list_name])
    if actual != expected:
        hint = value_checks.length_hint(expected, actual)
        counted = "keys" if axis == "keys" else "queries"
        raise RegardError(
            f"{attention_map.name} has {expected} {counted}, but there are {actual} {list_name} "
            f"tokens: {hint}"
        )


def _check_gold(gold: Iterable[tuple[int, int]], tokens: Mapping[str, TokenList]) -> None:
    if not {"source", "target"} <= set(tokens):
        raise RegardError("gold links need token lists called 'source' and 'target'")
    counts = tuple(tokens[name].num_words for name in ("source", "target"))
    for link in gold:
        if not all(0 <= word < count for word, count in zip(link, counts, strict=True)):
            raise RegardError(
                f"gold links must be (source word, target word) within {counts[0]} and "
                f"{counts[1]} words, but one is {tuple(link)}"
            )
