"""A loaded run: settings, tokenizers and a model that translates, traces and evaluates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Literal, Unpack, overload

from regard._support.arguments import to_integer
from regard._support.resources import parallel_map
from regard._support.text import count
from regard.config import RunConfig
from regard.data import Tokenizers, WordSpans
from regard.decoding import Translation, TranslationOptions, translate
from regard.decoding.engines import Engine
from regard.errors import RegardError, wrong_type
from regard.evaluation import EvaluationReport
from regard.models import Seq2SeqModel
from regard.runs.arguments import (
    TranslateOptions,
    expand_prefix,
    sampling_config,
    search_config,
    to_strings,
)
from regard.runs.evaluation import GoldLinks, Lines, evaluate_pairs, read_test_set
from regard.runs.folder import RunFolder
from regard.runs.tasks import Map, RunTasks
from regard.runs.tracing import attribute_translation, trace_translation
from regard.trace import Trace


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A trained translation model: `regard.load` and `regard.train` return it.

    Attributes:
        folder: the files of the run.
        settings: all settings it was trained with.
        tokenizers: of source and target.
        model: the model, in evaluation mode.
        engine: what translates with it; attention is always traced with the model itself.

    Example:
        >>> translation = run.translate("the old cat sees the dog")
        >>> trace = run.trace("the old cat sees the dog", target="le vieux chat voit le chien")
        >>> report = run.evaluate(["the cat", "the dog"], ["le chat", "le chien"])
    """

    folder: RunFolder
    settings: RunConfig
    tokenizers: Tokenizers
    model: Seq2SeqModel
    engine: Engine

    def __repr__(self) -> str:
        """Return a line: the folder, and the kind and size of the model."""
        size = count(sum(p.numel() for p in self.model.parameters()), "parameter")
        return f"<Run {str(self.folder.path)!r}: {self.settings.model.kind}, {size}>"

    @property
    def name(self) -> str:
        """Name of the folder, for captions."""
        return self.folder.path.resolve().name

    # A str is an iterable of strings, too, and 1 an int: the first overload that fits decides.
    @overload
    def translate(  # type: ignore[overload-overlap]
        self, text: str, *, n_best: Literal[1] = 1, **options: Unpack[TranslateOptions]
    ) -> Translation: ...

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, text: str, *, n_best: int, **options: Unpack[TranslateOptions]
    ) -> list[Translation]: ...

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, text: Iterable[str], *, n_best: Literal[1] = 1, **options: Unpack[TranslateOptions]
    ) -> list[Translation]: ...

    @overload
    def translate(
        self, text: Iterable[str], *, n_best: int, **options: Unpack[TranslateOptions]
    ) -> list[list[Translation]]: ...

    def translate(
        self,
        text: str | Iterable[str],
        *,
        beam_size: int | None = None,
        n_best: int = 1,
        length_penalty: float | None = None,
        sample: bool = False,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        min_length: int = 0,
        max_length: int | None = None,
        prefix: str | Sequence[str] | None = None,
        progress: bool = False,
    ) -> Translation | list[Translation] | list[list[Translation]]:
        """Translate a sentence, or many of them in batches of similar length.

        Args:
            text: a sentence, or any iterable of sentences. White space around one is ignored.
            beam_size: number of beams, 1 is greedy search; default: the run's own, or `n_best` if
                that is larger.
            n_best: number of translations of each sentence, at most `beam_size`.
            length_penalty: exponent of the length that divides the log-probability; larger values
                favour longer translations. Default: the run's own.
            sample: sample a translation instead of searching for the best one.
            temperature: of sampling; divides the logits. Default: 1.
            top_k: sample from this many most probable tokens only.
            top_p: sample from the most probable tokens that make up this probability.
            seed: the same seed gives the same samples.
            min_length: least number of tokens of a translation.
            max_length: greatest number of tokens; a longer translation is cut. By default about
                twice as many as the source has, and 20 more.
            prefix: what the translation begins with, or a text for each sentence. Its last word
                may be completed: "le ch" allows "le chat", and "le " the end of a word.
            progress: whether to report progress on stderr.

        Returns:
            For a sentence its `Translation`, or a list of them, best first, if `n_best` is above
            1. For several sentences a list of that, in their order.

        Raises:
            RegardError: if an argument is out of range, or belongs to sampling without `sample`.
            TypeError: if a sentence or prefix is no string, or a number of the wrong type.

        Example:
            >>> translation = run.translate("the old cat sees the dog", prefix="le ch")
            >>> str(translation).startswith("le ch")
            True
            >>> len(translation.token_log_probs) == len(translation.tokens) + 1  # EOS is the last
            True
            >>> [str(one) for one in run.translate(["the red boat", ""], beam_size=2)][1:]
            ['']
            >>> best, second = run.translate("the cat", n_best=2)
            >>> best.score >= second.score
            True
        """
        sentences = to_strings("text", text)
        options = self.translation_options(
            beam_size=beam_size,
            n_best=n_best,
            length_penalty=length_penalty,
            sample=sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            min_length=min_length,
            max_length=max_length,
        )
        results = translate(
            self.model,
            self.tokenizers,
            sentences,
            options.search,
            n_best=options.n_best,
            sampling=options.sampling,
            min_length=options.min_length,
            max_length=options.max_length,
            prefixes=expand_prefix(prefix, len(sentences)),
            progress=progress,
            engine=self.engine,
        )
        if isinstance(text, str):
            return results[0] if n_best > 1 else results[0][0]
        return results if n_best > 1 else [best for (best,) in results]

    def translation_options(
        self,
        *,
        beam_size: int | None = None,
        n_best: int = 1,
        length_penalty: float | None = None,
        sample: bool = False,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        min_length: int = 0,
        max_length: int | None = None,
    ) -> TranslationOptions:
        """Return the options of a translation: those given, else the run's own.

        Args:
            beam_size: as in `translate`, like all others.
            n_best: number of translations of each sentence.
            length_penalty: exponent of the length.
            sample: sample instead of searching.
            temperature: of sampling.
            top_k: of sampling.
            top_p: of sampling.
            seed: of sampling.
            min_length: least number of tokens.
            max_length: greatest number of tokens.

        Raises:
            RegardError: if an argument is out of range, or belongs to sampling without `sample`.
            TypeError: if a number is of the wrong type.
        """
        n_best = to_integer("n_best", n_best)
        min_length = to_integer("min_length", min_length)
        max_length = None if max_length is None else to_integer("max_length", max_length)
        search = search_config(self.settings.search, beam_size, length_penalty, sample)
        if beam_size is None:
            search = search.with_n_best(n_best)
        sampling = sampling_config(sample, temperature, top_k, top_p, seed)
        return TranslationOptions(search, n_best, sampling, min_length, max_length)

    def trace(
        self,
        source: str,
        target: str | Sequence[int] | Translation | None = None,
        *,
        words: WordSpans | None = None,
        title: str | None = None,
    ) -> Trace:
        """Record the attention weights of every layer and head for a translation.

        Args:
            source: a sentence.
            target: its translation as text, token ids or `Translation`, which the decoder is fed
                (teacher forcing); by default what beam search finds.
            words: the words that subwords are merged to, and gold links between them; by default
                words are split at spaces and punctuation.
            title: title of the trace; by default "source → translation".

        Returns:
            The trace, with the log-probabilities of the target tokens.

        Raises:
            RegardError: if source or target is empty.

        Example:
            >>> trace = run.trace("the old cat")
            >>> sorted({m.kind for m in trace.maps})
            ['causal', 'cross', 'self']
            >>> trace = run.trace("the old cat", target="le vieux chat")
        """
        source, output = self._source_and_output(source, target)
        return trace_translation(
            self.model,
            self.tokenizers,
            source,
            output,
            words=words,
            title=title or "",
            name=self.name,
        )

    def attribute(
        self,
        source: str,
        target: str | Sequence[int] | Translation | None = None,
        *,
        method: str = "chefer",
        token: int | None = None,
        steps: int = 50,
    ) -> Trace:
        """Attribute the log-probability of each token of a translation to the tokens read.

        Args:
            source: a sentence.
            target: its translation, as in `trace`; by default what beam search finds.
            method: one of `analysis.METHODS`; see `analysis.attribute`.
            token: position of a single target token to attribute; by default each has its row.
            steps: number of points on the way from the baseline, for "integrated_gradients".

        Returns:
            A trace whose weights are attributions, to be drawn as any other.

        Raises:
            RegardError: if source or target is empty, or there is no such method or token.

        Example:
            >>> trace = run.attribute("the old cat", target="le vieux chat")
            >>> sorted({m.kind for m in trace.maps})
            ['causal', 'cross']
        """
        source, output = self._source_and_output(source, target)
        return attribute_translation(
            self.model,
            self.tokenizers,
            source,
            output,
            method=method,
            token=token,
            steps=steps,
            name=self.name,
        )

    def _source_and_output(
        self, source: str, target: str | Sequence[int] | Translation | None
    ) -> tuple[str, str | Sequence[int]]:
        """Return the stripped source and its translation; raise if one is empty."""
        if not isinstance(source, str):
            raise wrong_type("source", "a string", source)
        source = source.strip()  # as `translate` does
        if not source:
            raise RegardError("source must have words to trace, but it is empty")
        if not isinstance(target, str | Sequence | Translation | None):
            raise wrong_type("target", "a string, token ids or a Translation", target)
        output = self.translate(source) if target is None else target
        if isinstance(output, Translation):
            output = output.tokens
        output = output.strip() if isinstance(output, str) else output
        if not output:
            what = f"the translation of {source!r}" if target is None else "target"
            raise RegardError(f"{what} must have words to trace, but it is empty")
        return source, output

    def export(
        self, out: str | PathLike[str], to: str = "ctranslate2", quantization: str | None = None
    ) -> str:
        """Write the run in another format, to be used without regard.

        Args:
            out: folder to write, new or empty; with "html" a file, such as "translator.html".
            to: "ctranslate2"; "onnx"; or "html", one page that translates in the browser.
            quantization: type of the stored parameters, such as "int8"; by default float16 with
                "html" and float32 with the others.

        Returns:
            One line that says what was written.

        Raises:
            RegardError: if there is no such format or quantization, the format cannot represent the
                model, or `out` cannot be written.
            MissingExtraError: if the library of the format is not installed.

        Example:
            >>> run.export("translator.html", to="html").startswith("wrote translator.html: ")
            True
        """
        from regard.runs.export import export_run  # it imports this module

        return export_run(self, Path(out), to, quantization)

    def evaluate(
        self,
        source: Lines,
        reference: Lines,
        *,
        gold: GoldLinks | None = None,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        progress: bool = False,
        map: Map = parallel_map,
    ) -> EvaluationReport:
        """Translate a test set, and compare the translations with its references.

        Args:
            source: a file of sentences, one a line, or the sentences.
            reference: a file of their translations, or the translations.
            gold: gold word alignments, for the alignment error rate: a file or lines in Pharaoh
                format (`0-0 1-2`), or pairs of word numbers for each sentence. Words are counted
                from 0 between spaces.
            beam_size: number of beams; default: the run's own.
            length_penalty: exponent of the length; default: the run's own.
            progress: whether to report progress on stderr.
            map: applies functions of `RunTasks` to items; by default in parallel threads. The
                metrics do not depend on how it shares them.

        Returns:
            BLEU and chrF with signature and confidence interval, exact match, perplexity and, with
            `gold`, the alignment error rate. It prints as a table.

        Raises:
            RegardError: if the texts are empty or do not match, or an argument is out of range.
            TypeError: if a text is neither a file nor a list of lines.

        Example:
            >>> report = run.evaluate(["the old cat sees the dog"], ["le vieux chat voit le chien"])
            >>> report.bleu == report.bleu_score.value
            True
            >>> print(report)
            BLEU ...
            perplexity ... per token
        """
        search = search_config(self.settings.search, beam_size, length_penalty)
        return evaluate_pairs(
            RunTasks(self.model, self.tokenizers, engine=self.engine),
            read_test_set(source, reference, gold),
            replace(self.settings, search=search),
            has_gold=gold is not None,
            progress=progress,
            map=map,
        )
