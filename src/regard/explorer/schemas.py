"""What the browser may send, and what it gets: the forms of every request and answer."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from regard.explorer.limits import LIMITS

LARGEST = 1e6  # of a number in the playground: its square and their sum stay finite
ROWS, WIDTH = 512, 128  # vectors of the playground, and numbers in one

Text = Annotated[str, Field(max_length=LIMITS.max_characters, pattern="^[^\\u0000]*$")]
Name = Annotated[str, Field(max_length=255)]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Positive = Annotated[float, Field(ge=1e-6, le=LARGEST, allow_inf_nan=False)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=WIDTH)]
Vectors = Annotated[list[Vector], Field(min_length=1, max_length=ROWS)]
Score = Literal[
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
Positions = Literal["none", "sinusoidal", "rotary", "alibi"]
Rows = list[list[float]]


class Form(BaseModel):
    """A request: nothing is guessed, and nothing is ignored."""

    model_config = ConfigDict(strict=True, extra="forbid")


class TranslateForm(Form):
    """A text to translate."""

    run: Name
    text: Text
    beam_size: int | None = Field(default=None, ge=1, le=LIMITS.max_beam_size)
    n_best: int = Field(default=1, ge=1, le=LIMITS.max_n_best)


class TraceForm(Form):
    """A sentence, and what the model shall say."""

    run: Name
    source: Text
    target: Text
    checkpoint: Name | None = None


class MaskForm(Form):
    """Which queries may look at which keys."""

    kind: MaskKind = "none"
    size: int | None = Field(default=None, ge=0, le=ROWS)
    lengths: list[Annotated[int, Field(ge=0, le=ROWS)]] | None = Field(
        default=None, max_length=ROWS
    )
    cells: list[Annotated[list[bool], Field(max_length=ROWS)]] | None = Field(
        default=None, max_length=ROWS
    )


class AttendForm(Form):
    """Vectors, and how they look at each other."""

    queries: Vectors
    keys: Vectors
    values: Vectors | None = None
    score: Score
    bandwidth: Positive = 1.0
    temperature: Positive = 1.0
    mask: MaskForm | None = None
    positions: Positions = "none"


class Problem(BaseModel):
    """What is wrong, in one sentence."""

    error: str


class RunFacts(BaseModel):
    """What a run is."""

    name: str
    kind: Literal["transformer", "recurrent"]
    layers: int
    heads: int
    parameters: int = Field(description="0 until the run has its vocabulary")
    beam_size: int
    phrasebook: Literal["fr", "zh"] | None
    ready: bool = Field(description="whether there are weights to translate with")


class LimitsAnswer(BaseModel):
    """The most of everything."""

    max_characters: int
    max_tokens: int
    max_beam_size: int
    max_n_best: int
    max_body_bytes: int
    max_trace_bytes: int
    max_traces_per_file: int
    max_attention_cells: int


class PlaygroundAnswer(BaseModel):
    """What the playground knows by name."""

    scores: list[str]
    masks: list[str]
    positions: list[str]
    kernels: list[str]


class RunsAnswer(BaseModel):
    """The runs named at start, the limits, and what the playground knows."""

    runs: list[RunFacts]
    limits: LimitsAnswer
    playground: PlaygroundAnswer


class LogAnswer(BaseModel):
    """Lines of a run's log, and where the next ones begin."""

    records: list[dict[str, Any]]
    next_offset: int
    finished: bool


class Checkpoint(BaseModel):
    """Weights that a run had at a step."""

    id: str
    step: int


class CheckpointsAnswer(BaseModel):
    """Weights that can be looked through, in order of steps."""

    checkpoints: list[Checkpoint]


class Word(BaseModel):
    """A word, and how sure the model was of it."""

    text: str
    probability: float


class TranslationAnswer(BaseModel):
    """One translation, piece by piece."""

    text: str
    score: float
    log_prob: float
    tokens: list[str]
    token_log_probs: list[float]
    words: list[Word]


class TranslateAnswer(BaseModel):
    """Translations, best first."""

    translations: list[TranslationAnswer]


class SavedTrace(BaseModel):
    """A trace of a file."""

    name: str
    title: str
    model: str


class TracesAnswer(BaseModel):
    """Traces that can be asked for."""

    traces: list[SavedTrace]


class Numbers(BaseModel):
    """Numbers as unsigned integers in base64, times a scale."""

    shape: list[int]
    bits: Literal[8, 16, 32]
    scale: float
    data: str


class TokensAnswer(BaseModel):
    """One side of attention."""

    pieces: list[str]
    words: list[int | None] | None = None
    special: list[int]
    padding: list[int]
    log_probabilities: list[float | None] | None = None


class LookAnswer(BaseModel):
    """Where the heads of one module looked: whole weights, or what they were reduced to."""

    name: str
    kind: Literal["self", "causal", "cross"]
    queries: str
    keys: str
    call: int
    place: str
    heads: list[int]
    sizes: list[int]
    weights: Numbers | None = None
    reduced: dict[str, Numbers] | None = None


class TraceAnswer(BaseModel):
    """A trace, in the form that `regard.trace` describes."""

    format: Literal["regard trace"]
    version: Literal[1]
    title: str
    model: str
    tokens: dict[str, TokensAnswer]
    gold: list[list[int]] | None = None
    looks: list[LookAnswer]


class Formula(BaseModel):
    """A score's name, and its numbers."""

    name: str
    parameters: dict[str, Any]


class AttendAnswer(BaseModel):
    """Every step of attention, in numbers; null is minus infinity."""

    queries: Rows
    keys: Rows
    scores: list[list[float | None]]
    mask: list[list[bool]]
    biased_scores: list[list[float | None]]
    weights: Rows
    context: Rows
    formula: Formula
