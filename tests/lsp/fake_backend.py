"""A backend for features under test: an engine that is there, and settings that no file gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from specedit.config import Settings
from specedit.engine.api import CancelToken, Engine


@dataclass
class FakeBackend:
    """Engine and settings as the backend gives them.

    Attributes:
        answers: the engine.
        settings: of every file.
        work: what is under way, by kind.
        worked: what was begun so far, by kind.
        place: the device of the model.
    """

    answers: Engine
    settings: Settings = field(default_factory=Settings)
    work: list[str] = field(default_factory=list)
    worked: list[str] = field(default_factory=list)
    place: str | None = None

    def engine(self) -> Engine:
        return self.answers

    def device(self, cancel: CancelToken) -> str | None:
        return self.place

    def settings_for(self, path: Path | None) -> Settings:
        return self.settings

    @contextmanager
    def busy(self, kind: str) -> Iterator[None]:
        self.work.append(kind)
        self.worked.append(kind)
        try:
            yield
        finally:
            self.work.remove(kind)
