from __future__ import annotations

import pytest

from specedit.train import licences

WHEEL = b"Metadata-Version: 2.4\nName: p\n%s\n\nLicense: GPL is only spoken of in this description\n"


@pytest.mark.parametrize(
    ("declared", "licence", "granted"),
    [
        ("MIT", "MIT", True),
        ("Expat", "MIT", True),
        ("MIT License", "MIT", True),
        ("Apache Software License", "Apache-2.0", True),
        ("BSD 3-Clause", "BSD-3-Clause", True),
        ("Apache-2.0 OR BSD-3-Clause", "BSD-3-Clause", True),
        ("MIT OR GPL-2.0-only", "MIT", True),
        ("MIT/Apache-2.0", "MIT", True),
        ("MIT AND GPL-2.0-only", "MIT", False),
        ("GPL-3.0", "MIT", False),
        ("MPL-2.0", "MIT", False),
        ("Permitted use only", "MIT", False),
        ("", "MIT", False),
    ],
)
def test_what_a_declaration_grants(declared: str, licence: str, granted: bool) -> None:
    assert licences.grants(declared, licence) is granted


@pytest.mark.parametrize(
    ("headers", "declared"),
    [
        (b"License-Expression: MIT", "MIT"),
        (b"License: BSD\nClassifier: License :: OSI Approved :: BSD License", "BSD License"),
        (b"License: ISC", "ISC"),
        (b"Classifier: Topic :: Software Development", ""),
    ],
)
def test_a_wheel(headers: bytes, declared: str) -> None:
    assert licences.in_wheel(WHEEL % headers) == declared


@pytest.mark.parametrize(
    ("package_json", "declared"),
    [
        (b'{"license": "MIT"}', "MIT"),
        (b'{"license": {"type": "ISC", "url": "u"}}', "ISC"),
        (b'{"licenses": [{"type": "MIT"}, {"type": "GPL-2.0"}]}', "MIT OR GPL-2.0"),
        (b"{}", ""),
    ],
)
def test_an_npm_package(package_json: bytes, declared: str) -> None:
    assert licences.in_npm(package_json) == declared


def test_a_source_release() -> None:
    mit = b"Permission is hereby granted, free of charge,\n to any person obtaining a copy"
    assert licences.in_source({"Cargo.toml": b'name = "p"\nlicense = "MIT OR Apache-2.0"\n'}) == "MIT OR Apache-2.0"
    assert licences.in_source({"COPYING": mit, "src/main.c": b"GNU General Public License"}) == "MIT"
    both = licences.in_source({"LICENSE": mit + b" ... or the GNU General Public License"})
    assert not licences.grants(both, "MIT")
    assert licences.in_source({"src/main.c": mit}) == ""
