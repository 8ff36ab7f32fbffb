"""Pydantic models of every request and response body, and the limits of a request.

The OpenAPI document at `/openapi.json` is generated from these models, and the tests hold the
server to it.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class ExplorerLimits(BaseModel):
    """Largest values that a request may have; a request beyond them is rejected with a message."""

    model_config = ConfigDict(frozen=True)

    max_characters: int = 1000  # of a text
    max_tokens: int = 200  # of a text
    max_beam_size: int = 12
    max_n_best: int = 12
    max_body_bytes: int = 1 << 18
    max_trace_bytes: int = 1 << 24  # of an uploaded file of traces, compressed and decompressed
    max_traces_per_file: int = 200
    max_attention_cells: int = 20_000  # queries × keys of the playground


LIMITS = ExplorerLimits()

MAX_MAGNITUDE = 1e6  # of a vector's components: squares and their sums stay finite
MAX_VECTORS, MAX_WIDTH = 512, 128
MAX_NAME_CHARACTERS = 255

Text = Annotated[str, Field(max_length=LIMITS.max_characters, pattern="^[^\\u0000]*$")]
Name = Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)]
Component = Annotated[float, Field(ge=-MAX_MAGNITUDE, le=MAX_MAGNITUDE, allow_inf_nan=False)]
PositiveNumber = Annotated[float, Field(ge=1e-6, le=MAX_MAGNITUDE, allow_inf_nan=False)]
Vector = Annotated[list[Component], Field(min_length=1, max_length=MAX_WIDTH)]
Vectors = Annotated[list[Vector], Field(min_length=1, max_length=MAX_VECTORS)]
ScoreName = Literal[
    "dot",
    "scaled_dot",
    "cosine",
    "gaussian",
    "average",
    "boxcar",
    "triangular",
    "epanechnikov",
    "bilinear",
    "additive",
]
MaskKind = Literal["none", "causal", "window", "lengths", "cells"]
PositionKind = Literal["none", "sinusoidal", "rotary", "alibi"]
Matrix = list[list[float]]
ScoreMatrix = list[list[float | None]]


class StrictRequest(BaseModel):
    """Base of the requests: types are not coerced and unknown fields are rejected."""

    model_config = ConfigDict(strict=True, extra="forbid")


class TranslateRequest(StrictRequest):
    """A text to translate."""

    run: Name
    text: Text
    beam_size: int | None = Field(
        default=None, ge=1, le=LIMITS.max_beam_size, description="the run's own if null"
    )
    n_best: int = Field(default=1, ge=1, le=LIMITS.max_n_best)


class TraceRequest(StrictRequest):
    """A sentence and the translation to trace, by teacher forcing."""

    run: Name
    source: Text
    target: Text
    checkpoint: Name | None = Field(default=None, description="the final parameters if null")


class MaskRequest(StrictRequest):
    """An attention mask; `size` belongs to window, `lengths` to lengths, `cells` to cells."""

    kind: MaskKind = "none"
    size: int | None = Field(default=None, ge=0, le=MAX_VECTORS)
    lengths: list[Annotated[int, Field(ge=0, le=MAX_VECTORS)]] | None = Field(
        default=None, max_length=MAX_VECTORS
    )
    cells: list[Annotated[list[bool], Field(max_length=MAX_VECTORS)]] | None = Field(
        default=None, max_length=MAX_VECTORS, description="query × key; true means may attend"
    )


class AttendRequest(StrictRequest):
    """Vectors and the attention between them."""

    queries: Vectors
    keys: Vectors
    values: Vectors | None = Field(default=None, description="the keys if null")
    score: ScoreName
    bandwidth: PositiveNumber = 1.0
    temperature: PositiveNumber = 1.0
    mask: MaskRequest | None = None
    positions: PositionKind = "none"


class RunInfo(BaseModel):
    """Summary of a run."""

    name: str
    kind: Literal["transformer", "recurrent"]
    layers: int
    heads: int
    parameters: int = Field(description="0 until the run has a vocabulary")
    beam_size: int
    phrasebook: Literal["fr", "zh"] | None = Field(
        description="target language if the run was trained on the phrasebook"
    )
    ready: bool = Field(description="whether the run has parameters to translate with")


class PlaygroundOptions(BaseModel):
    """Choices of the playground."""

    scores: list[str]
    masks: list[str]
    positions: list[str]
    kernels: list[str]


class RunsResponse(BaseModel):
    """The served runs, the limits, and the choices of the playground."""

    runs: list[RunInfo]
    limits: ExplorerLimits
    playground: PlaygroundOptions


class LogResponse(BaseModel):
    """Records of a training log, and the byte offset at which the next ones begin."""

    records: list[dict[str, Any]]
    next_offset: int
    finished: bool


class CheckpointInfo(BaseModel):
    """Parameters of a run at a training step."""

    id: str
    step: int


class CheckpointsResponse(BaseModel):
    """Checkpoints in order of steps."""

    checkpoints: list[CheckpointInfo]


class WordProbability(BaseModel):
    """A word and the probability of all its tokens."""

    text: str
    probability: float


class TranslationResponse(BaseModel):
    """A translation with the log-probability of each token."""

    text: str
    score: float = Field(description="log-probability with the length penalty applied")
    log_prob: float
    tokens: list[str]
    token_log_probs: list[float]
    words: list[WordProbability]


class TranslateResponse(BaseModel):
    """Translations, best first."""

    translations: list[TranslationResponse]
    unseen_words: list[str] = Field(
        description="words of the text that are known to be missing from the training data"
    )


class TraceInfo(BaseModel):
    """Name, title and model of a trace."""

    name: str
    title: str
    model: str


class TracesResponse(BaseModel):
    """Traces that can be requested by name."""

    traces: list[TraceInfo]


class QuantizedArray(BaseModel):
    """Array of unsigned integers in base64, to be multiplied by a scale."""

    shape: list[int]
    bits: Literal[8, 16, 32]
    scale: float
    data: str


class TokenListResponse(BaseModel):
    """Tokens of one axis of attention."""

    pieces: list[str]
    words: list[int | None] | None = None
    special: list[int]
    padding: list[int]
    log_probs: list[float | None] | None = None


class AttentionMapResponse(BaseModel):
    """Attention weights of one module: complete, or summarized if they are many."""

    name: str
    kind: Literal["self", "causal", "cross"]
    queries: str
    keys: str
    query_inputs: str | None = Field(
        default=None,
        description="tokens that a decoder reads, where the rows are those that it writes",
    )
    call: int
    call_site: str
    heads: list[int]
    shape: list[int]
    weights: QuantizedArray | None = None
    summary: dict[str, QuantizedArray] | None = None
    value_norms: QuantizedArray | None = None


class SelectedHeadResponse(BaseModel):
    """The head of one kind of attention to look at first, and why."""

    kind: str
    layer: int
    head: int
    criterion: str = Field(description="highest alignment score, or lowest entropy")
    value: float
    candidates: int = Field(description="how many heads were compared")


class TraceResponse(BaseModel):
    """A trace in the file format of `regard.trace`, and the heads to look at first."""

    format: Literal["regard trace"]
    version: Literal[4]
    title: str
    model: str
    tokens: dict[str, TokenListResponse]
    gold: list[list[int]] | None = None
    images: dict[str, dict[str, Any]] | None = None
    maps: list[AttentionMapResponse]
    selected_heads: list[SelectedHeadResponse]


class ScoreFormula(BaseModel):
    """Name of a score and its parameters."""

    name: str
    parameters: dict[str, Any]


class AttendResponse(BaseModel):
    """Every step of attention; null stands for minus infinity."""

    queries: Matrix = Field(description="with positions applied")
    keys: Matrix = Field(description="with positions applied")
    scores: ScoreMatrix
    mask: list[list[bool]] = Field(description="true means may attend")
    biased_scores: ScoreMatrix = Field(description="scores / temperature + bias, before the mask")
    weights: Matrix
    context: Matrix
    formula: ScoreFormula
