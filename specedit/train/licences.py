"""Which licence a release declares, as its index records it."""

from __future__ import annotations

import email.parser
import json
import re
from collections.abc import Mapping

#: How metadata spells the licences of the table.
_SPELLINGS = {
    "Apache-2.0": re.compile(r"\bapache\b", re.IGNORECASE),
    "BSD-2-Clause": re.compile(r"\bbsd", re.IGNORECASE),
    "BSD-3-Clause": re.compile(r"\bbsd", re.IGNORECASE),
    "ISC": re.compile(r"\bisc\b", re.IGNORECASE),
    "MIT": re.compile(r"\b(mit|expat)\b", re.IGNORECASE),
    "PSF-2.0": re.compile(r"\b(psf|python software foundation)\b", re.IGNORECASE),
}
#: A phrase of each licence's text, without punctuation.
_PHRASES = {
    "Apache-2.0": "apache license version 2 0",
    "BSD-3-Clause": "redistribution and use in source and binary forms",
    "ISC": "permission to use copy modify and or distribute this software for any purpose with or without fee",
    "ISC ": "permission to use copy modify and distribute this software for any purpose with or without fee",
    "MIT": "permission is hereby granted free of charge to any person",
    "GPL": "gnu general public license",
}
_RESTRICTED = re.compile(
    r"\b[AL]?GPL|\bGNU\b|\bMPL|mozilla|\bEUPL|\bSSPL|\bBUSL|proprietary|non-?commercial", re.IGNORECASE
)
_ALTERNATIVE = re.compile(r"\s+or\s+|/|\||;", re.IGNORECASE)


def grants(declared: str, licence: str) -> bool:
    """Whether a declaration offers `licence` (an SPDX name), alone or as one of several to choose from.

    Example: "MIT OR GPL-2.0-only" grants MIT, "MIT AND GPL-2.0-only" does not.
    """
    spelling = _SPELLINGS[licence]
    alternatives = _ALTERNATIVE.split(declared)
    return any(spelling.search(one) and not _RESTRICTED.search(one) for one in alternatives)


def in_wheel(metadata: bytes) -> str:
    """The licence that a wheel's METADATA declares: its expression, else its classifiers, else its free text."""
    headers = email.parser.BytesParser().parsebytes(metadata, headersonly=True)
    classifiers = [line for line in headers.get_all("Classifier", []) if line.startswith("License ::")]
    named = " AND ".join(line.rsplit("::", 1)[1].strip() for line in classifiers if line != "License :: OSI Approved")
    return str(headers.get("License-Expression") or named or headers.get("License", ""))


def in_npm(package_json: bytes) -> str:
    """The licence that a package.json declares, also in the old form of an object or a list."""
    described = json.loads(package_json)
    declared = described.get("license") or described.get("licenses") or ""
    options = declared if isinstance(declared, list) else [declared]
    return " OR ".join(str(option.get("type", "")) if isinstance(option, dict) else str(option) for option in options)


def is_notice(name: str) -> bool:
    """Whether a file at the top of a source release says its licence, as `in_source` reads it."""
    return name == "Cargo.toml" or re.match(r"(licen[cs]e|copying|copyright)", name, re.IGNORECASE) is not None


def in_source(files: Mapping[str, bytes]) -> str:
    """The licence of a source release: what Cargo.toml declares, else the licences whose texts lie at its top."""
    manifest = re.search(rb'^license *= *"([^"]+)"', files.get("Cargo.toml", b""), re.MULTILINE)
    if manifest:
        return manifest[1].decode("utf-8", "replace")
    notices = [content.decode("utf-8", "replace") for path, content in files.items() if is_notice(path)]
    return " OR ".join(" AND ".join(_named_by_text(notice)) for notice in notices)


def _named_by_text(notice: str) -> list[str]:
    words = " ".join(re.sub(r"[^\w\s]", " ", notice).lower().split())
    return [name for name, phrase in _PHRASES.items() if phrase in words]
