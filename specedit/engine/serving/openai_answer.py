"""Answers in the forms of OpenAI's chat completions and completions, whole and in streamed chunks."""

from __future__ import annotations

import codecs
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from specedit import __version__
from specedit.engine.api import FinishReason, TextChunk, TokenLogprob, Usage
from specedit.engine.serving.openai_api import ChatRequest, CompletionRequest
from specedit.engine.wire import ChunkExtension
from specedit.errors import ShuttingDownError

_FINGERPRINT = f"specedit-{__version__}"

#: The drafters whose tokens come from the text of a prediction.
_PREDICTING = ("cursor", "replay", "lookup")

#: What OpenAI tells where a probability is nil; JSON has no infinity.
_LEAST_LOGPROB = -9999.0

_Finish = Literal["stop", "length"]


class PromptTokensDetails(msgspec.Struct, frozen=True):
    """Tokens of the prompt that were reused from earlier requests."""

    cached_tokens: int


class CompletionTokensDetails(msgspec.Struct, frozen=True):
    """What became of the prediction's tokens; see `usage_body`."""

    accepted_prediction_tokens: int
    rejected_prediction_tokens: int


class UsageBody(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer cost, in OpenAI's words and, under `specedit`, in the engine's."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails
    specedit: Usage


class TopLogprob(msgspec.Struct, frozen=True):
    """A token that might have stood there."""

    token: str
    logprob: float
    bytes: list[int]


class ContentLogprob(msgspec.Struct, frozen=True):
    """A token of a chat's answer."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


class ChatLogprobs(msgspec.Struct, frozen=True):
    """The tokens of a chat's answer."""

    content: list[ContentLogprob]
    refusal: None = None


class AnswerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a chat."""

    content: str
    role: Literal["assistant"] = "assistant"
    refusal: None = None


class ChatChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer of a chat."""

    index: Literal[0] = 0
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: _Finish


class _Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What whole answers and events have in common; the same for all events of an answer."""

    id: str
    created: int
    model: str
    system_fingerprint: str = _FINGERPRINT


class ChatCompletion(_Envelope, frozen=True, kw_only=True):
    """The whole answer of a chat."""

    object: Literal["chat.completion"] = "chat.completion"
    choices: list[ChatChoice]
    usage: UsageBody


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """What a chunk adds; the first tells the role."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the one answer of a chat."""

    index: Literal[0] = 0
    delta: Delta
    logprobs: ChatLogprobs | None
    finish_reason: _Finish | None


class ChatCompletionChunk(_Envelope, frozen=True, kw_only=True):
    """An event of a streamed chat. `usage` is there where it was asked for: null, and in the last chunk what it was."""

    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    choices: list[ChunkChoice]
    usage: UsageBody | UnsetType | None = UNSET
    specedit: ChunkExtension | UnsetType = UNSET


class CompletionLogprobs(msgspec.Struct, frozen=True):
    """The tokens of a completion; a part of a character is named by its bytes.

    Attributes:
        tokens: as text.
        token_logprobs: of each.
        top_logprobs: for each the most probable tokens in its place, and itself.
        text_offset: where each begins, in code points of the answer's text.
    """

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer of a completion, or a piece of it."""

    index: Literal[0] = 0
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: _Finish | None


class Completion(_Envelope, frozen=True, kw_only=True):
    """A whole completion, or an event of a streamed one."""

    object: Literal["text_completion"] = "text_completion"
    choices: list[CompletionChoice]
    usage: UsageBody | UnsetType | None = UNSET
    specedit: ChunkExtension | UnsetType = UNSET


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is served.

    `max_model_len` is the most tokens of prompt and answer, named as by vLLM; `device` what the model runs on: `cpu`,
    `cuda`, `mps`, or null where that is not known.
    """

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    max_model_len: int
    device: str | None = None


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """The models that are served."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class Health(msgspec.Struct, frozen=True):
    """Whether requests are taken, and nothing else."""

    status: Literal["ok", "shutting down"]


RequestT = TypeVar("RequestT", ChatRequest, CompletionRequest)


class Answer(Protocol):
    """Puts the chunks of one answer into one form; each method gives JSON."""

    def chunk(self, chunk: TextChunk) -> bytes | None:
        """The event for a chunk, None where it would tell nothing."""
        ...

    def last(self, usage: Usage) -> bytes | None:
        """The event that tells the usage, None where that was not asked for."""
        ...

    def whole(self, chunks: Sequence[TextChunk]) -> bytes:
        """All of the answer at once."""
        ...


class _Answer(Generic[RequestT]):
    """Methods raise ShuttingDownError for an answer that the engine cancelled: its client is still there."""

    _prefix = ""

    def __init__(self, request: RequestT, model: str) -> None:
        self._request: RequestT = request
        self._envelope: dict[str, Any] = {
            "id": f"{self._prefix}-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model,
        }
        self._begun = False

    def _usage(self, usage: Usage) -> UsageBody:
        return usage_body(usage, predicted=bool(self._request.prediction_text))

    def _usage_so_far(self, usage: Usage) -> UsageBody | UnsetType | None:
        if self._request.continuous_usage:
            return self._usage(usage)
        return None if self._request.include_usage else UNSET

    def _silent(self, chunk: TextChunk) -> bool:
        return not (chunk.text or chunk.tokens or chunk.finish_reason or self._traced(chunk))

    def _traced(self, chunk: TextChunk) -> ChunkExtension | UnsetType:
        return ChunkExtension(chunk.step) if chunk.step is not None else UNSET


class ChatAnswer(_Answer[ChatRequest]):
    """The answer of a chat; see `Answer`."""

    _prefix = "chatcmpl"

    def chunk(self, chunk: TextChunk) -> bytes | None:
        """The event for a chunk; the first tells the role."""
        if self._silent(chunk):
            return None
        role: Literal["assistant"] | UnsetType = UNSET if self._begun else "assistant"
        self._begun = True
        choice = ChunkChoice(
            delta=Delta(role=role, content=chunk.text),
            logprobs=self._logprobs(chunk.tokens),
            finish_reason=_finish(chunk.finish_reason) if chunk.finish_reason else None,
        )
        return _json(self._event([choice], self._usage_so_far(chunk.usage), self._traced(chunk)))

    def last(self, usage: Usage) -> bytes | None:
        """The event that tells the usage."""
        return _json(self._event([], self._usage(usage))) if self._request.include_usage else None

    def whole(self, chunks: Sequence[TextChunk]) -> bytes:
        """All of the answer at once."""
        choice = ChatChoice(
            message=AnswerMessage(content="".join(chunk.text for chunk in chunks)),
            logprobs=self._logprobs([token for chunk in chunks for token in chunk.tokens]),
            finish_reason=_finish(chunks[-1].finish_reason),
        )
        return _json(ChatCompletion(**self._envelope, choices=[choice], usage=self._usage(chunks[-1].usage)))

    def _event(
        self,
        choices: list[ChunkChoice],
        usage: UsageBody | UnsetType | None,
        extension: ChunkExtension | UnsetType = UNSET,
    ) -> ChatCompletionChunk:
        return ChatCompletionChunk(**self._envelope, choices=choices, usage=usage, specedit=extension)

    def _logprobs(self, tokens: Sequence[TokenLogprob]) -> ChatLogprobs | None:
        return ChatLogprobs([_content_logprob(token) for token in tokens]) if self._request.logprobs else None


class CompletionAnswer(_Answer[CompletionRequest]):
    """The answer of a completion; see `Answer`."""

    _prefix = "cmpl"

    def __init__(self, request: CompletionRequest, model: str) -> None:
        super().__init__(request, model)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._offset = 0

    def chunk(self, chunk: TextChunk) -> bytes | None:
        """The event for a chunk."""
        if self._silent(chunk):
            return None
        finish = _finish(chunk.finish_reason) if chunk.finish_reason else None
        choice = self._choice(chunk.text, chunk.tokens, finish)
        return _json(self._completion([choice], self._usage_so_far(chunk.usage), self._traced(chunk)))

    def last(self, usage: Usage) -> bytes | None:
        """The event that tells the usage."""
        return _json(self._completion([], self._usage(usage))) if self._request.include_usage else None

    def whole(self, chunks: Sequence[TextChunk]) -> bytes:
        """All of the answer at once."""
        text = "".join(chunk.text for chunk in chunks)
        tokens = [token for chunk in chunks for token in chunk.tokens]
        choice = self._choice(text, tokens, _finish(chunks[-1].finish_reason))
        return _json(self._completion([choice], self._usage(chunks[-1].usage)))

    def _completion(
        self,
        choices: list[CompletionChoice],
        usage: UsageBody | UnsetType | None,
        extension: ChunkExtension | UnsetType = UNSET,
    ) -> Completion:
        return Completion(**self._envelope, choices=choices, usage=usage, specedit=extension)

    def _choice(self, text: str, tokens: Sequence[TokenLogprob], finish: _Finish | None) -> CompletionChoice:
        logprobs = self._logprobs(tokens) if self._request.logprobs is not None else None
        return CompletionChoice(text=text, logprobs=logprobs, finish_reason=finish)

    def _logprobs(self, tokens: Sequence[TokenLogprob]) -> CompletionLogprobs:
        offsets = []
        for token in tokens:
            offsets.append(self._offset)
            self._offset += len(self._decoder.decode(token.token_bytes))
        return CompletionLogprobs(
            tokens=[_name(token) for token in tokens],
            token_logprobs=[_finite(token.logprob) for token in tokens],
            top_logprobs=[_by_name((*token.top, token)) for token in tokens],
            text_offset=offsets,
        )


def usage_body(usage: Usage, *, predicted: bool) -> UsageBody:
    """What an answer cost, as OpenAI tells it.

    The engine's drafts come from more than the prediction. Where one was given, the tokens that its drafters "cursor",
    "replay" and "lookup" drafted count as the prediction's: those that the target accepted, and the others as rejected.
    What "ngram" drafted comes from a table of common code and doesn't count; without a prediction nothing does.
    """
    drafters = [usage.drafters[name] for name in _PREDICTING if name in usage.drafters] if predicted else []
    accepted = sum(drafter.accepted for drafter in drafters)
    return UsageBody(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.prompt_tokens + usage.output_tokens,
        prompt_tokens_details=PromptTokensDetails(usage.cached_tokens),
        completion_tokens_details=CompletionTokensDetails(
            accepted_prediction_tokens=accepted,
            rejected_prediction_tokens=sum(drafter.drafted for drafter in drafters) - accepted,
        ),
        specedit=usage,
    )


def _finish(reason: FinishReason | None) -> _Finish:
    """The reason that a client is told; whoever cancels an answer is no longer there to hear of it."""
    if reason is None or reason == "cancelled":
        raise ShuttingDownError("the server is shutting down and ended this answer: ask again when it is back")
    return reason


def _content_logprob(token: TokenLogprob) -> ContentLogprob:
    top = [TopLogprob(other.text, _finite(other.logprob), list(other.token_bytes)) for other in token.top]
    return ContentLogprob(token.text, _finite(token.logprob), list(token.token_bytes), top)


def _by_name(tokens: Iterable[TokenLogprob]) -> dict[str, float]:
    return {_name(token): _finite(token.logprob) for token in tokens}


def _name(token: TokenLogprob) -> str:
    try:
        return token.token_bytes.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in token.token_bytes)


def _finite(logprob: float) -> float:
    return max(logprob, _LEAST_LOGPROB)


_json = msgspec.json.Encoder().encode
