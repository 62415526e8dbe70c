"""OpenAI's chat completions and completions: what a request may hold, and what it asks of the engine.

Field names, ranges and defaults are those of OpenAI's API reference. What has no effect on the text is accepted; what
this server can't do is refused, and the refusal says what to do instead.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from specedit.config import Count, NotNegative
from specedit.engine.api import CancelToken, Fim, GenerateRequest, Message, Priority, Role, Sampling
from specedit.engine.wire import Extension
from specedit.errors import (
    ContextOverflowError,
    EngineError,
    OutOfMemoryError,
    OverloadedError,
    ShuttingDownError,
    SpecEditError,
    UnsupportedModelError,
    UsageError,
)

#: A name under which every server offers its model.
MODEL_ALIAS = "default"

#: What OpenAI documents for completions that name no limit.
_COMPLETION_TOKENS = 16

#: Keeps the most probable token alone, as OpenAI's 0 does; the engine's range is open at 0.
_LEAST_TOP_P = 1e-9

Penalty = Annotated[float, Meta(ge=-2.0, le=2.0)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
StopString = Annotated[str, Meta(min_length=1)]
TokenId = Annotated[int, Meta(ge=0, lt=2**31)]
LogitBias = Annotated[
    dict[TokenId, Annotated[float, Meta(ge=-100.0, le=100.0)]],
    Meta(extra_json_schema={"propertyNames": {"pattern": r"^(0|[1-9][0-9]{0,8})\Z"}}),
]
Nothing = Annotated[list[Any], Meta(max_length=0)]
"""An empty list: what clients send for a feature that they don't use."""
Off = Annotated[bool, Meta(extra_json_schema={"const": False})]
"""False: what clients send for a feature that they don't use."""


class RequestError(UsageError):
    """A request that HTTP refuses, with what its answer says beside the message.

    Attributes:
        status: of the HTTP response.
        param: the field of the request that is wrong.
        code: a short name for programs.
        kind: OpenAI's `type`.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.kind = kind


class Error(msgspec.Struct, frozen=True):
    """What OpenAI's API tells of an error."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of a response that is an error, and the event that ends a stream with one."""

    error: Error


class TextPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a message or of a prediction."""

    type: Literal["text"]
    text: str


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message. What a client gets as an answer may be sent back as it is."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]
    name: str | None = None
    annotations: Nothing | None = None
    audio: None = None
    function_call: None = None
    refusal: None = None
    tool_calls: Nothing | None = None


class Prediction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the answer is expected to follow; drafts come from it."""

    type: Literal["content"]
    content: str | list[TextPart]


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an answer is streamed. Chunks are never padded, so `include_obfuscation` changes nothing.

    With `include_usage` a last chunk tells the usage; with vLLM's `continuous_usage_stats` every chunk tells it so far.
    """

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None
    include_obfuscation: bool | None = None


class TextFormat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one form that answers have."""

    type: Literal["text"]


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What both endpoints take. `top_k`, `min_p` and `repetition_penalty` are named as by vLLM."""

    model: str
    frequency_penalty: Penalty | None = None
    logit_bias: LogitBias | None = None
    min_p: Share | None = None
    n: Literal[1] | None = None
    prediction: Prediction | None = None
    presence_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Meta(gt=0.0)] | None = None
    seed: Seed | None = None
    specedit: Extension | None = None
    stop: StopString | Annotated[list[StopString], Meta(max_length=4)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    top_p: Share | None = None
    user: str | None = None

    @property
    def extension(self) -> Extension:
        """What specedit's own clients tell; the defaults for others."""
        return self.specedit or Extension()

    @property
    def prediction_text(self) -> str:
        """The text of the prediction, empty where there is none."""
        return _text(self.prediction.content) if self.prediction else ""

    @property
    def include_usage(self) -> bool:
        """Whether a last streamed chunk tells the usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    @property
    def continuous_usage(self) -> bool:
        """Whether each streamed chunk tells the usage so far."""
        return self.stream_options is not None and bool(self.stream_options.continuous_usage_stats)

    def _sampling(self) -> Sampling:
        return Sampling(
            temperature=_given(self.temperature, 1.0),
            top_k=max(0, _given(self.top_k, 0)),
            top_p=max(_LEAST_TOP_P, _given(self.top_p, 1.0)),
            min_p=_given(self.min_p, 0.0),
            repetition_penalty=_given(self.repetition_penalty, 1.0),
            presence_penalty=_given(self.presence_penalty, 0.0),
            frequency_penalty=_given(self.frequency_penalty, 0.0),
            logit_bias=_given(self.logit_bias, {}),
        )

    def _generate(
        self,
        cancel: CancelToken,
        *,
        messages: tuple[Message, ...] = (),
        fim: Fim | None = None,
        prompt: str | None = None,
        max_new_tokens: int | Literal["context"],
        limited: bool,
        logprobs: int | None,
        priority: Priority,
    ) -> GenerateRequest:
        if self.stream_options is not None and not self.stream:
            raise RequestError("stream_options needs stream: true; set it, or leave both out", param="stream_options")
        limit: int | Literal["context"] | None = max_new_tokens
        if not limited and self.extension.limit is not None:
            limit = None if self.extension.limit == "prediction" else "context"
        return GenerateRequest(
            messages=messages,
            fim=fim,
            prompt=prompt,
            prediction=self.prediction_text,
            hints=self.extension.hints,
            sampling=self._sampling(),
            seed=secrets.randbits(63) if self.seed is None else self.seed,
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()),
            max_new_tokens=limit,
            priority=self.extension.priority or priority,
            cancel=cancel,
            trace=self.extension.trace,
            logprobs=logprobs,
        )


class ChatRequest(_Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/chat/completions`.

    Fields without effect: `metadata`, `parallel_tool_calls`, `prompt_cache_key`, `prompt_cache_options`,
    `prompt_cache_retention`, `safety_identifier`, `service_tier`, `store` and `user`. `max_tokens` is an old name of
    `max_completion_tokens`; where both are given the smaller one holds.
    """

    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    audio: None = None
    function_call: Literal["none", "auto"] | None = None
    functions: Nothing | None = None
    logprobs: bool | None = None
    max_completion_tokens: Count | None = None
    max_tokens: Count | None = None
    metadata: dict[str, str] | None = None
    modalities: list[Literal["text"]] | None = None
    moderation: None = None
    parallel_tool_calls: bool | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    reasoning_effort: Literal["none"] | None = None
    response_format: TextFormat | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    tool_choice: Literal["none", "auto"] | None = None
    tools: Nothing | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    verbosity: Literal["medium"] | None = None
    web_search_options: None = None

    def generate_request(self, cancel: CancelToken) -> GenerateRequest:
        """What the engine is asked; `cancel` ends it.

        Raises:
            RequestError: a field needs another one that is missing, or belongs to a gap.
        """
        if self.top_logprobs is not None and not self.logprobs:
            raise RequestError("top_logprobs needs logprobs: true; set it, or leave both out", param="top_logprobs")
        _refuse_gap_fields(self.extension)
        limits = [limit for limit in (self.max_tokens, self.max_completion_tokens) if limit is not None]
        return self._generate(
            cancel,
            messages=tuple(Message(_role(message.role), _text(message.content)) for message in self.messages),
            max_new_tokens=min(limits) if limits else "context",
            limited=bool(limits),
            logprobs=(self.top_logprobs or 0) if self.logprobs else None,
            priority="rewrite",
        )


class CompletionRequest(_Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/completions`; with a `suffix` the gap before it is filled. `user` has no effect."""

    prompt: str | Annotated[list[str], Meta(min_length=1, max_length=1)]
    best_of: Literal[1] | None = None
    echo: Off | None = None
    logprobs: Annotated[int, Meta(ge=0, le=5)] | None = None
    max_tokens: NotNegative | None = None
    suffix: str | None = None

    def generate_request(self, cancel: CancelToken) -> GenerateRequest:
        """What the engine is asked; `cancel` ends it.

        Raises:
            RequestError: a field needs another one that is missing, or `echo` is set.
        """
        if self.echo:
            raise RequestError(_NOT_SUPPORTED["echo"], param="echo")
        prompt = self.prompt if isinstance(self.prompt, str) else self.prompt[0]
        given = self.extension
        if self.suffix is None:
            _refuse_gap_fields(given)
        return self._generate(
            cancel,
            fim=None if self.suffix is None else Fim(prompt, self.suffix, given.typed, given.files, given.name),
            prompt=prompt if self.suffix is None else None,
            max_new_tokens=_given(self.max_tokens, _COMPLETION_TOKENS),
            limited=self.max_tokens is not None,
            logprobs=self.logprobs,
            priority="rewrite" if self.suffix is None else "inline",
        )


RequestT = TypeVar("RequestT", ChatRequest, CompletionRequest)


def decode_request(body: bytes, kind: type[RequestT], served_model: str) -> RequestT:
    """The request in a body.

    Raises:
        RequestError: it is no JSON, a field is unknown, wrong or not supported (400), or the model is another (404).
    """
    try:
        request = msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _explained(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"the body is not valid JSON in UTF-8 ({error}): correct it", code="invalid_json") from None
    except RecursionError:
        raise RequestError("the body is nested too deeply: no field here needs that", code="invalid_json") from None
    if request.model not in (served_model, MODEL_ALIAS):
        raise model_not_found(request.model, served_model)
    return request


def model_not_found(model: str, served_model: str) -> RequestError:
    """The refusal of another model than the one that is served."""
    return RequestError(
        f"this server has no model {model!r}: ask for {served_model!r} or {MODEL_ALIAS!r}",
        status=404,
        param="model",
        code="model_not_found",
    )


def failure(error: Exception) -> tuple[int, ErrorBody]:
    """The status and the body that tell a client of an error; of one that nobody meant they tell nothing."""
    if isinstance(error, RequestError):
        return error.status, ErrorBody(Error(str(error), error.kind, error.param, error.code))
    for kind, status, name, code in _FAILURES:
        if isinstance(error, kind):
            return status, ErrorBody(Error(str(error), name, None, code))
    message = "the server failed at this request: try again, and report it if it stays"
    return 500, ErrorBody(Error(message, "server_error", None, "internal_error"))


_FAILURES: tuple[tuple[type[SpecEditError], int, str, str | None], ...] = (
    (UsageError, 400, "invalid_request_error", None),
    (ContextOverflowError, 400, "invalid_request_error", "context_length_exceeded"),
    (UnsupportedModelError, 400, "invalid_request_error", "unsupported_by_model"),
    (OverloadedError, 429, "rate_limit_error", "overloaded"),
    (ShuttingDownError, 503, "server_error", "shutting_down"),
    (OutOfMemoryError, 503, "server_error", "out_of_memory"),
    (EngineError, 500, "server_error", "engine_failed"),
    (SpecEditError, 500, "server_error", None),
)

_TEXT_ONLY = "only text is understood: send content as a string or as parts of type text"
_NO_TOOLS = "tools and functions are not supported: leave them out, and say in a message what the model should write"
_NOT_SUPPORTED = {
    "audio": "audio is not supported: leave it out; answers are text",
    "best_of": "best_of is not supported: leave it out, and send a request for each answer, with seeds of their own",
    "echo": "echo is not supported: leave it out, and put the prompt before the answer yourself",
    "function_call": _NO_TOOLS,
    "functions": _NO_TOOLS,
    "messages.audio": "audio is not supported: send the message's text",
    "messages.content": _TEXT_ONLY,
    "messages.function_call": _NO_TOOLS,
    "messages.role": "a message is of system, developer, user or assistant; others are not supported",
    "messages.tool_calls": _NO_TOOLS,
    "modalities": "modalities other than text are not supported: leave it out",
    "moderation": "moderation is not supported: leave it out",
    "n": "n other than 1 is not supported: send a request for each answer, with seeds of their own",
    "prediction.content": _TEXT_ONLY,
    "prompt": "a prompt is one text: token ids and several prompts are not supported; send a request for each text",
    "reasoning_effort": "reasoning_effort is not supported: leave it out; answers come without reasoning",
    "response_format": "response_format other than text is not supported: say in a message which form you want",
    "tool_choice": _NO_TOOLS,
    "tools": _NO_TOOLS,
    "verbosity": "verbosity is not supported: leave it out, and say in a message how long the answer should be",
    "web_search_options": "web search is not supported: leave it out",
}
_PLACE = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>.*)`$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>.*)`$", re.DOTALL)
_INDEX = re.compile(r"\[[^]]*\]")


def _explained(told: str) -> RequestError:
    """What msgspec says about a field, with what to do about it where the field is known and not supported."""
    place = _PLACE.search(told)
    path = place["path"] if place else ""
    message = told[: place.start()] if place else told
    if unknown := _UNKNOWN.match(message):
        path = f"{path}.{unknown['field']}".lstrip(".")
        message = "there is no such field; remove it or correct its name"
    names = _INDEX.sub("", path).split(".")
    explained = (_NOT_SUPPORTED.get(".".join(names[:length])) for length in range(len(names), 0, -1))
    advice = next((text for text in explained if text), None)
    return RequestError(advice or ": ".join(filter(None, (path, message))), param=path or None)


def _refuse_gap_fields(extension: Extension) -> None:
    for name in ("typed", "files", "name"):
        if getattr(extension, name):
            raise RequestError(
                f"specedit.{name} goes with a gap to fill: ask for a completion with a suffix, or leave it out",
                param=f"specedit.{name}",
            )


_T = TypeVar("_T")


def _given(value: _T | None, default: _T) -> _T:
    return default if value is None else value


def _role(role: Literal["system", "developer", "user", "assistant"]) -> Role:
    return "system" if role == "developer" else role


def _text(content: str | Sequence[TextPart]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)
