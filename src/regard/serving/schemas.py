"""Request and response bodies of LibreTranslate's API, and the limits of a request."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class ServingLimits(BaseModel):
    """Largest values that a request may have; one beyond them is refused with a message."""

    model_config = ConfigDict(frozen=True)

    max_characters: int = 20_000  # of all texts of a request
    max_texts: int = 1000  # of a request
    max_tokens: int = 512  # of a line, which is translated as one sentence
    max_body_bytes: int = 1 << 18
    timeout_seconds: float = 30.0  # from arrival to response, time in the queue included


LIMITS = ServingLimits()
MAX_ALTERNATIVES = 10

Code = Annotated[str, Field(max_length=16, examples=["en"])]


class LibreTranslateRequest(BaseModel):
    """A text, or several, to translate; as JSON or as an HTML form."""

    q: str | list[str] = Field(description="a text, or a list of texts", examples=["The cat."])
    source: Code = Field(description="language of the text")
    target: Code = Field(description="language of the translation", examples=["fr"])
    format: Literal["text"] = Field(default="text", description="markup is not supported")
    alternatives: int = Field(
        default=0, ge=0, le=MAX_ALTERNATIVES, description="further translations of each text"
    )
    api_key: str = Field(default="", description="the token, instead of an Authorization header")


class LibreTranslateResponse(BaseModel):
    """A translation for a text, a list of them for a list."""

    translatedText: str | list[str]
    alternatives: list[str] | list[list[str]] | None = Field(
        default=None, description="of each text, best first; only if asked for"
    )


class SupportedLanguage(BaseModel):
    """A language, and those into which it can be translated."""

    code: str
    name: str
    targets: list[str]


class HealthResponse(BaseModel):
    """Whether the server is able to translate."""

    status: Literal["ok"] = "ok"
