"""What servers send back: the pieces of a streamed answer, and the list of models."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from specedit.engine.api import DrafterUsage, FinishReason, TokenLogprob, TraceStep, Usage
from specedit.engine.client.dialect import ServerKind, kind_of
from specedit.engine.client.transport import Event
from specedit.engine.wire import ChunkExtension
from specedit.errors import EngineError

_DONE = b"[DONE]"
_SHOWN_BYTES = 120
#: llama-server's `stop_type`: a token that ends the text, one of the stop strings, the limit.
_STOP_TYPES: Mapping[str, FinishReason] = {"eos": "stop", "word": "stop", "limit": "length", "none": "stop"}


@dataclass(frozen=True, slots=True)
class Piece:
    """What one event of a stream says.

    Attributes:
        text: the next part of the answer.
        finish_reason: as the server names it; set once, at the answer's end.
        step: what made the part, where specedit's server was asked.
        tokens: its tokens with log probabilities, where these were asked for.
        usage: what the server counted, mostly at the very end.
        problem: what went wrong, as the server says it.
        is_end: nothing follows.
    """

    text: str = ""
    finish_reason: str | None = None
    step: TraceStep | None = None
    tokens: tuple[TokenLogprob, ...] = ()
    usage: ServerUsage | None = None
    problem: bytes | None = None
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class ServerUsage:
    """What a server counted: all of it, where that is specedit's, else a few totals."""

    whole: Usage | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    forwards: int = 0
    draft: DrafterUsage = field(default_factory=DrafterUsage)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that a server has.

    Attributes:
        id: its name there.
        aliases: other names of it.
        kind: what serves it.
        context_tokens: of prompt and answer together; None where the server doesn't say.
        device: what it runs on, as torch calls it; only specedit's server says it.
    """

    id: str
    aliases: tuple[str, ...]
    kind: ServerKind
    context_tokens: int | None
    device: str | None = None


class Meter:
    """Counts one answer as it comes, until the server says what it counted.

    Wall clock is ours: up to the first piece the prompt is read, after that the answer is written.
    """

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._first: float | None = None
        self._last = self._started
        self._output_tokens = 0
        self._told: ServerUsage | None = None

    def count(self, piece: Piece) -> None:
        """Take a piece into account."""
        self._last = time.perf_counter()
        if piece.usage is not None:
            self._told = piece.usage
        if piece.text or piece.tokens:
            self._first = self._first or self._last
            self._output_tokens += len(piece.tokens) or (len(piece.step.emitted) if piece.step else 1)

    def usage(self) -> Usage:
        """The total so far. Before the server told it, only output tokens are counted: at least one a piece."""
        told = self._told
        if told is not None and told.whole is not None:
            return told.whole
        told = told or ServerUsage(output_tokens=self._output_tokens)
        first = self._first or self._last
        return Usage(
            prompt_tokens=told.prompt_tokens,
            cached_tokens=told.cached_tokens,
            output_tokens=told.output_tokens,
            forwards=told.forwards,
            drafters={"server": told.draft} if told.draft.drafted else {},
            prefill_seconds=first - self._started,
            decode_seconds=self._last - first,
        )


def piece_of(event: Event, url: str) -> Piece:
    """What an event says, from `/v1/chat/completions`, `/v1/completions` or `/infill`.

    Raises:
        EngineError: it is none of these servers' events.
    """
    if event.data.strip() == _DONE:
        return Piece(is_end=True)
    if event.kind == "error":
        return Piece(problem=event.data)
    try:
        chunk = msgspec.json.decode(event.data, type=_Chunk)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        shown = event.data[:_SHOWN_BYTES].decode("utf-8", "replace")
        raise EngineError(
            f"{url} sent something that is no part of an answer ({error}): {shown!r}. Is it an OpenAI-compatible "
            "server, and does nothing between change what it sends?"
        ) from error
    if chunk.error is not None:
        return Piece(problem=event.data)
    usage = _usage_of(chunk)
    step = chunk.specedit.step if chunk.specedit else None
    if chunk.content is not None:
        reason = _STOP_TYPES.get(chunk.stop_type, chunk.stop_type) if chunk.stop else None
        return Piece(chunk.content, reason, usage=usage, is_end=chunk.stop)
    if not chunk.choices:
        return Piece(step=step, usage=usage)
    choice = chunk.choices[0]
    text = (choice.delta.content if choice.delta else choice.text) or ""
    tokens = _tokens_of(choice.logprobs) if choice.logprobs else ()
    return Piece(text, choice.finish_reason, step, tokens, usage)


def models_of(body: bytes) -> tuple[ServedModel, ...]:
    """The models of an answer to `/v1/models`.

    Raises:
        msgspec.DecodeError: it is none.
    """
    listed = msgspec.json.decode(body, type=_Models).data
    return tuple(
        ServedModel(
            model.id,
            tuple(name for name in model.aliases or () if name != model.id),
            kind_of(model.owned_by or ""),
            model.max_model_len or (model.meta.n_ctx if model.meta else None),
            model.device,
        )
        for model in listed
    )


# --- what is read of the JSON; all else is passed over


class _Delta(msgspec.Struct):
    content: str | None = None


class _Logprob(msgspec.Struct):
    token: str
    logprob: float | None
    bytes: list[int] | None = None
    top_logprobs: list[_Logprob] = []

    def known(self) -> TokenLogprob:
        token_bytes = bytes(self.bytes) if self.bytes is not None else _bytes_of(self.token)
        return TokenLogprob(token_bytes, _number(self.logprob), tuple(top.known() for top in self.top_logprobs))


class _Logprobs(msgspec.Struct):
    """Of a chat in `content`; of a completion, as it was first, in lists."""

    content: list[_Logprob] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None
    specedit: Usage | None = None


class _Timings(msgspec.Struct):
    cache_n: int = 0
    prompt_n: int = 0
    predicted_n: int = 0
    draft_n: int = 0
    draft_n_accepted: int = 0


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    timings: _Timings | None = None
    specedit: ChunkExtension | None = None
    error: Any = None
    content: str | None = None
    stop: bool = False
    stop_type: str = "eos"


class _Meta(msgspec.Struct):
    n_ctx: int | None = None


class _Model(msgspec.Struct):
    id: str
    owned_by: str | None = None
    aliases: list[str] | None = None
    max_model_len: int | None = None
    meta: _Meta | None = None
    device: str | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


def _usage_of(chunk: _Chunk) -> ServerUsage | None:
    usage, timings = chunk.usage, chunk.timings
    if usage is not None and usage.specedit is not None:
        return ServerUsage(whole=usage.specedit)
    if timings is not None:
        # Each forward gives one token beside the accepted ones.
        return ServerUsage(
            prompt_tokens=timings.cache_n + timings.prompt_n,
            cached_tokens=timings.cache_n,
            output_tokens=timings.predicted_n,
            forwards=timings.predicted_n - timings.draft_n_accepted,
            draft=DrafterUsage(timings.draft_n, timings.draft_n_accepted),
        )
    if usage is None:
        return None
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details else None
    return ServerUsage(
        prompt_tokens=usage.prompt_tokens, cached_tokens=cached or 0, output_tokens=usage.completion_tokens
    )


def _tokens_of(logprobs: _Logprobs) -> tuple[TokenLogprob, ...]:
    if logprobs.content is not None:
        return tuple(token.known() for token in logprobs.content)
    tokens, chances = logprobs.tokens or [], logprobs.token_logprobs or []
    tops = logprobs.top_logprobs or [None] * len(tokens)
    return tuple(
        TokenLogprob(
            _bytes_of(token),
            _number(chance),
            tuple(TokenLogprob(_bytes_of(name), value) for name, value in (top or {}).items()),
        )
        for token, chance, top in zip(tokens, chances, tops, strict=False)
    )


def _bytes_of(token: str) -> bytes:
    r"""What a token's name stands for: a part of a character is named by its bytes, such as `bytes:\xc3`."""
    if re.fullmatch(r"bytes:(\\x[0-9a-f]{2})+", token):
        return bytes.fromhex(token.removeprefix("bytes:").replace("\\x", ""))
    return token.encode("utf-8", "replace")


def _number(logprob: float | None) -> float:
    """JSON has no minus infinity."""
    return float("-inf") if logprob is None else logprob
