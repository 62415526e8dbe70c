"""What a server needs of a scheduler, without a model: each request is answered by a script, from its own thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

from specedit.engine.api import FinishReason, GenerateRequest, TextChunk, Usage
from specedit.engine.scheduler import Deliver, QueueState
from specedit.errors import SpecEditError

#: A chunk, an error, or an event that is waited for.
Item = TextChunk | SpecEditError | threading.Event


def script(*texts: str, finish: FinishReason | None = "stop", usage: Usage | None = None) -> list[TextChunk]:
    """A chunk for each text; the last one ends the answer, unless `finish` is None."""
    usage = usage or Usage(prompt_tokens=7, output_tokens=len(texts), forwards=len(texts))
    chunks = [TextChunk(text, usage) for text in texts]
    if finish is not None:
        chunks[-1] = TextChunk(texts[-1], usage, finish)
    return chunks


class ScriptedAnswers:
    """Fake of `Answers`.

    Attributes:
        script: what the next requests are answered with.
        refusal: raised by `submit` where it is set.
        encoding: `submit` takes until it is set.
        requests: those that were submitted.
        plain: whether each of them was to be decoded plainly.
        ended: how each answer ended, "cancelled" where its client was gone.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew: every request is greeted."""
        self.script: Sequence[Item] = script("Hello", " world")
        self.refusal: Exception | None = None
        self.encoding = threading.Event()
        self.encoding.set()
        self.requests: list[GenerateRequest] = []
        self.plain: list[bool] = []
        self.ended: queue.Queue[str] = queue.Queue()

    def submit(self, request: GenerateRequest, deliver: Deliver, *, plain: bool = False) -> None:
        """See `Answers.submit`."""
        self.encoding.wait()
        if self.refusal is not None:
            raise self.refusal
        self.requests.append(request)
        self.plain.append(plain)
        threading.Thread(target=_answer, args=(request, deliver, list(self.script), self.ended), daemon=True).start()

    def state(self) -> QueueState:
        """See `Answers.state`."""
        return QueueState(waiting={"inline": 0, "rewrite": 3, "batch": 0}, paused=2, running=1, kv_bytes=4096, steps=9)


def _answer(request: GenerateRequest, deliver: Deliver, items: Sequence[Item], ended: queue.Queue[str]) -> None:
    changed = threading.Event()
    request.cancel.on_cancel(changed.set)
    for item in items:
        while isinstance(item, threading.Event) and not item.is_set() and not request.cancel.cancelled:
            changed.wait(0.01)
        if request.cancel.cancelled:
            deliver(TextChunk("", Usage(), "cancelled"))
            ended.put("cancelled")
            return
        if not isinstance(item, threading.Event):
            deliver(item)
    last = items[-1]
    ended.put(last.finish_reason or "" if isinstance(last, TextChunk) else "error")
