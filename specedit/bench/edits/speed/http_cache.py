"""Responses of a web service kept on disk, each as long as the service allows."""

import hashlib
import json
import re
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

MAX_AGE = re.compile(r"max-age=(\d+)")


class CacheError(Exception):
    """The cache directory can't be used."""


@dataclass
class Entry:
    url: str
    status: int
    body: str
    headers: dict = field(default_factory=dict)
    stored_at: float = 0.0

    def max_age(self):
        control = self.headers.get("cache-control", "")
        if "no-store" in control:
            return 0
        found = MAX_AGE.search(control)
        return int(found[1]) if found else 0

    def is_fresh(self, now):
        return now - self.stored_at < self.max_age()


def encode(entry):
    return json.dumps(asdict(entry), sort_keys=True)


def decode(text):
    return Entry(**json.loads(text))


class Cache:
    def __init__(self, directory, clock=time.time):
        self.directory = Path(directory)
        self.clock = clock
        self.hits = 0
        self.misses = 0
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CacheError(f"{directory} can't be made: {error.strerror}") from error

    def _path(self, url):
        digest = hashlib.sha256(url.encode()).hexdigest()
        return self.directory / f"{digest[:32]}.json"

    def get(self, url):
        """Return the fresh Entry for this address, or None."""
        try:
            entry = decode(self._path(url).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError, TypeError):
            self.misses += 1
            return None
        if entry.url != url or not entry.is_fresh(self.clock()):
            self.misses += 1
            return None
        self.hits += 1
        return entry

    def put(self, url, status, body, headers=None):
        """Store a response and return its Entry; one that may not be kept is only returned."""
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        entry = Entry(url, status, body, lowered, self.clock())
        if status == 200 and entry.max_age() > 0:
            path = self._path(url)
            partial = path.with_suffix(".part")
            partial.write_text(encode(entry), encoding="utf-8")
            partial.replace(path)
        return entry

    def remove_stale(self):
        removed = 0
        for path in sorted(self.directory.glob("*.json")):
            try:
                fresh = decode(path.read_text(encoding="utf-8")).is_fresh(self.clock())
            except (ValueError, TypeError):
                fresh = False
            if not fresh:
                path.unlink()
                removed += 1
        return removed

    def fetch(self, url, download):
        """Return the Entry for this address, from the cache or by calling download."""
        cached = self.get(url)
        if cached is not None:
            return cached
        status, body, headers = download(url)
        return self.put(url, status, body, headers)
