"""The language server with a model that needs no weights: python -m tests.lsp.scripted_lsp SCRIPT.json

The script: `completions` and `answers` are what the model writes at the cursor and as rewrites, one after the other,
and the last one again and again; `seconds_per_chunk` and `chunk_chars` say how fast. Each request leaves a line in
`record`. An instruction `obeyed` gives is followed whatever the script says.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specedit.engine.api import GenerateRequest, TextChunk
from specedit.errors import EngineError
from specedit_lsp import server
from tests.fakes import ScriptedEngine, fenced


@dataclass
class Script:
    """What the model writes, and what it was asked."""

    completions: list[str] = field(default_factory=lambda: ["pass"])
    answers: list[str] = field(default_factory=list)
    seconds_per_chunk: float = 0.0
    chunk_chars: int = 7
    error: str = ""
    record: str = ""

    @classmethod
    def read(cls, path: Path) -> Script:
        return cls(**json.loads(path.read_text()))


_OBEYED = re.compile(r'answer (".*")')


def obeyed(text: str) -> str:
    """An instruction to rewrite the part as `text`."""
    return f"answer {json.dumps(text)}"


class ScriptedModel:
    """An engine that follows a script."""

    model_name = "scripted"

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._counts = {"completion": 0, "rewrite": 0}
        self.warnings: list[str] = []

    def generate(self, request: GenerateRequest) -> Iterator[TextChunk]:
        kind = "completion" if request.fim else "rewrite"
        with self._lock:
            count = self._counts[kind]
            self._counts[kind] += 1
        self._note(event="asked", kind=kind, number=count, priority=request.priority, prompt=_prompt(request))
        if self._script.error:
            raise EngineError(self._script.error)
        chunks, finish = 0, None
        try:
            for chunk in self._engine(request, count).generate(request):
                chunks, finish = chunks + 1, chunk.finish_reason
                yield chunk
        finally:
            self._note(event="ended", kind=kind, number=count, chunks=chunks, finish=finish)

    def close(self) -> None:
        pass

    def _engine(self, request: GenerateRequest, count: int) -> ScriptedEngine:
        script = self._script
        said = _OBEYED.search(request.messages[-1].content) if request.messages else None
        if said:
            text = fenced(json.loads(said[1]))
        elif request.fim:
            text = request.fim.typed + script.completions[min(count, len(script.completions) - 1)]
        elif script.answers:
            text = script.answers[min(count, len(script.answers) - 1)]
        else:
            text = fenced(request.prediction.upper())
        return ScriptedEngine([text], script.chunk_chars, seconds_per_chunk=script.seconds_per_chunk)

    def _note(self, **fields: Any) -> None:
        if self._script.record:
            with self._lock, Path(self._script.record).open("a") as file:
                file.write(json.dumps(fields) + "\n")


def _prompt(request: GenerateRequest) -> Any:
    if request.fim:
        fim = request.fim
        return {
            "prefix": fim.prefix,
            "typed": fim.typed,
            "suffix": fim.suffix,
            "files": [[file.name, file.text] for file in fim.files],
        }
    return [message.content for message in request.messages]


if __name__ == "__main__":
    model = ScriptedModel(Script.read(Path(sys.argv[1])))
    server.run(make_engine=lambda *_given, **_named: model)
