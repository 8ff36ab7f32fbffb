"""Request and response bodies of LibreTranslate's API, and the limits of a request."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WrapValidator,
)
from pydantic_core import PydanticCustomError


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


def _with_message(message: str) -> WrapValidator:
    """Replace pydantic's errors, of which a union has one for each type, by one message."""

    def replace_errors(value: Any, validate: Callable[[Any], Any]) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            raise PydanticCustomError("union_type", "Input should {it}", {"it": message}) from error

    return WrapValidator(replace_errors)


def _refuse_boolean(value: Any) -> Any:
    """Refuse true and false, which pydantic takes for 1 and 0; a form has digits."""
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return value


Texts = Annotated[str | list[str], _with_message("be a text or a list of texts")]
Format = Annotated[
    Literal["text", ""] | None,
    _with_message("be 'text': HTML cannot be translated, so send q as plain text"),
]
Count = Annotated[int, BeforeValidator(_refuse_boolean)]
Code = Annotated[str, Field(max_length=16, examples=["en"])]


class LibreTranslateRequest(BaseModel):
    """A text, or several, to translate; as JSON or as an HTML form."""

    q: Texts = Field(description="a text, or a list of texts", examples=["The cat."])
    source: Code = Field(description="language of the text")
    target: Code = Field(description="language of the translation", examples=["fr"])
    format: Format = Field(default="text", description="markup is not supported")
    alternatives: Count = Field(
        default=0, ge=0, le=MAX_ALTERNATIVES, description="further translations of each text"
    )
    api_key: str | None = Field(
        default="", description="the token, instead of an Authorization header"
    )


class LibreTranslateForm(LibreTranslateRequest):
    """The same as an HTML form, which has no null and no empty list."""

    q: str | Annotated[list[str], Field(min_length=1)] = Field(
        description="a text, or several if repeated", examples=["The cat."]
    )
    format: Literal["text", ""] = Field(default="text", description="markup is not supported")
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
