"""The text-level protocol where the two halves of specedit meet.

The text half (`specedit.edit`) asks for an answer in words of text; an engine, in this process or behind HTTP, streams
it back. Plain dataclasses, no torch: whoever imports this module stays light.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from specedit.errors import UsageError

Role = Literal["system", "user", "assistant"]
Priority = Literal["inline", "rewrite", "batch"]
FinishReason = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. `content` is plain text: no special token of the model can come from it."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class ContextFile:
    """Text of another file, or of a part of one, that the model is shown beside a gap to fill.

    `name` is a path relative to the project, with forward slashes.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Fim:
    """Fill in the middle: the text before and after the cursor.

    Attributes:
        prefix: what stands before the gap, up to `typed`.
        suffix: what stands after it.
        typed: the beginning of a word at the cursor; the answer begins with it. The model is asked from before it, so
            that it is not held to how the beginning alone would be tokenized (token healing).
        files: other text to know, the most stable first; read before the prefix.
        name: of the file with the gap, as those of `files`.
    """

    prefix: str
    suffix: str
    typed: str = ""
    files: tuple[ContextFile, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class FimMarkers:
    """A model's token strings for filling in the middle: prefix, text before, suffix, text after, middle.

    `file` opens another file: its name, a line end, its text. Empty where the model has no such marker.
    """

    prefix: str
    suffix: str
    middle: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Hints:
    """What the caller guesses about the answer. Hints change the speed, never the answer.

    Attributes:
        substitutions: pairs (old, new) of text that the edit is likely to replace throughout.
        resume_offsets: code-point offsets into the prediction where the answer may rejoin it after a change.
        opening: what the answer puts before the text of the prediction, such as the line that opens a code block.
        closing: what it puts after it.
    """

    substitutions: tuple[tuple[str, str], ...] = ()
    resume_offsets: tuple[int, ...] = ()
    opening: str = ""
    closing: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is drawn from the target's logits. The defaults are greedy decoding.

    Attributes:
        temperature: 0 is greedy.
        top_k: keep the k most probable tokens; 0 keeps all.
        top_p: keep the smallest set of most probable tokens with at least this probability; 1 keeps all.
        min_p: drop tokens less probable than this share of the most probable one; 0 keeps all.
        repetition_penalty: divides positive and multiplies negative logits of tokens in prompt or output; 1 is off.
        presence_penalty: subtracted from the logit of each token in the output; 0 is off.
        frequency_penalty: subtracted as often as the token stands in the output; 0 is off.
        logit_bias: token id -> added to its logit.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)


class CancelToken:
    """Set by whoever asked, from any thread; the engine looks at it after each prefill chunk and each step."""

    __slots__ = ("_callbacks", "_cancelled", "_lock")

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        self._cancelled = False
        # Reentrant, as a signal's handler may cancel while the thread it interrupts holds the lock.
        self._lock = threading.RLock()

    def cancel(self) -> None:
        """Ask the engine to stop; idempotent."""
        with self._lock:
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once, in the thread that cancels; at once where that has happened."""
        with self._lock:
            if not self._cancelled:
                self._callbacks.append(callback)
                return
        callback()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One answer to generate: exactly one of `messages`, `fim` and `prompt` is given.

    Attributes:
        messages: a chat, oldest first.
        fim: the text around a gap to fill.
        prompt: plain text to go on from, without any template.
        prediction: the text that the answer is expected to follow (no fences); drafts come from it.
        hints: what else the caller guesses about the answer.
        sampling: how tokens are drawn.
        seed: the same request with the same seed gives the same tokens, whatever is drafted.
        stop: strings that end the answer; they are not part of it.
        max_new_tokens: the most tokens to generate; None lets the engine take 1.5 x the prediction's tokens + 256,
            "context" whatever the model's context has room for.
        priority: which queue the request waits in where an engine serves several.
        cancel: set it to end generation early.
        trace: give each chunk the step that made it, so that the drafting can be looked at.
        logprobs: give each chunk its tokens with their log probabilities, and beside each so many of the most probable
            ones; None gives none.
    """

    messages: tuple[Message, ...] = ()
    fim: Fim | None = None
    prompt: str | None = None
    prediction: str = ""
    hints: Hints = field(default_factory=Hints)
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    stop: tuple[str, ...] = ()
    max_new_tokens: int | Literal["context"] | None = None
    priority: Priority = "rewrite"
    cancel: CancelToken = field(default_factory=CancelToken)
    trace: bool = False
    logprobs: int | None = None

    def check(self) -> None:
        """Refuse what no engine can answer.

        Raises:
            UsageError: there is not exactly one of messages, fim and prompt, or a text holds a lone surrogate, which is
                no character.
        """
        if sum((bool(self.messages), self.fim is not None, self.prompt is not None)) != 1:
            raise UsageError("a request needs exactly one of messages, fim and prompt")
        for text in self._texts():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise UsageError(f"the text holds half a character ({error}), which can't be read: remove it") from None

    def _texts(self) -> Iterator[str]:
        yield from (message.content for message in self.messages)
        if self.fim is not None:
            yield from (self.fim.prefix, self.fim.suffix, self.fim.typed, self.fim.name)
            for file in self.fim.files:
                yield from (file.name, file.text)
        yield from (self.prompt or "", self.prediction, self.hints.opening, self.hints.closing)
        for pair in self.hints.substitutions:
            yield from pair
        yield from self.stop


@dataclass(frozen=True, slots=True)
class DrafterUsage:
    """What one drafter, or one depth, contributed: tokens drafted and how many of them the target accepted."""

    drafted: int = 0
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost so far.

    Attributes:
        prompt_tokens: tokens of the prompt.
        cached_tokens: how many of them were reused from an earlier request.
        output_tokens: tokens generated, the end-of-text token counted.
        forwards: target forwards of the decode steps; the prefill is not counted.
        prefill_forwards: target forwards that only read the prompt.
        drafters: what each drafter contributed, by name.
        depths: the same by how many tokens ahead the draft stood: "1", "2-3", "4-7", "8-15", "16-31", "32+".
        largest_draft: the most tokens drafted in one step.
        prefill_seconds: wall clock until the prompt stood in the cache.
        decode_seconds: wall clock of the decode steps.
        draft_seconds: the part of it that went into drafting.
        forward_seconds: the part of it that went into forwards.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    forwards: int = 0
    prefill_forwards: int = 0
    drafters: Mapping[str, DrafterUsage] = field(default_factory=dict)
    depths: Mapping[str, DrafterUsage] = field(default_factory=dict)
    largest_draft: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    draft_seconds: float = 0.0
    forward_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """Wall clock of prefill and decode steps together."""
        return self.prefill_seconds + self.decode_seconds

    @property
    def drafted(self) -> int:
        """Tokens drafted by all drafters."""
        return sum(usage.drafted for usage in self.drafters.values())

    @property
    def accepted(self) -> int:
        """Drafted tokens that the target accepted."""
        return sum(usage.accepted for usage in self.drafters.values())

    @property
    def tokens_per_forward(self) -> float:
        """Mean accepted length: output tokens a decode forward, the next token counted, prefill excluded."""
        return self.output_tokens / self.forwards if self.forwards else 0.0


@dataclass(frozen=True, slots=True)
class DraftedToken:
    """A node of a draft tree, as text.

    Attributes:
        text: what the token stands for; an unfinished character shows as U+FFFD.
        parent: the node before it in the step's list, -1 for the first token after what stands.
        origin: the name of the drafter.
        probability: the drafter's belief that the token and all before it are right.
    """

    text: str
    parent: int
    origin: str
    probability: float


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One decode step: what was drafted, what the target made of it, and what that took.

    Attributes:
        drafted: the verified nodes, parents first.
        accepted: those that were accepted, a path from the root.
        emitted: the tokens that the step gave, the accepted ones first, as text.
        proposed: nodes that were proposed; those that were not worth verifying are not in `drafted`.
        draft_seconds: wall clock of drafting.
        forward_seconds: wall clock of the forward.
    """

    drafted: tuple[DraftedToken, ...] = ()
    accepted: tuple[int, ...] = ()
    emitted: tuple[str, ...] = ()
    proposed: int = 0
    draft_seconds: float = 0.0
    forward_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token and how probable it was.

    Attributes:
        token_bytes: what it stands for, perhaps only a part of a character.
        logprob: natural logarithm of its probability by the target's logits, before any sampling setting.
        top: the most probable tokens in its place, the best first, without `top` of their own.
    """

    token_bytes: bytes
    logprob: float
    top: tuple[TokenLogprob, ...] = ()

    @property
    def text(self) -> str:
        """The token as text; a part of a character shows as U+FFFD."""
        return self.token_bytes.decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A piece of the answer.

    `finish_reason` is set on the last chunk only; `usage` is the total so far; `step` is what made the piece, where the
    request asked for a trace, and `tokens` are its tokens, where it asked for log probabilities.
    """

    text: str
    usage: Usage
    finish_reason: FinishReason | None = None
    step: TraceStep | None = None
    tokens: tuple[TokenLogprob, ...] = ()


class Engine(Protocol):
    """Whatever answers a `GenerateRequest`."""

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        """Stream the answer; the last chunk carries `finish_reason`.

        Closing the iterator stops the model.

        Raises:
            ContextOverflowError: prompt and answer do not fit; raised before anything is generated.
            UsageError: the request itself is wrong.
            EngineError: generation failed.
        """
        ...
