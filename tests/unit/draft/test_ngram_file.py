from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specedit.draft import ngram_file
from specedit.errors import IntegrityError

ROW = st.dictionaries(st.integers(0, 1 << 18), st.integers(0, 255), min_size=1, max_size=5)


def columns(rows: dict[int, dict[int, int]], order: str) -> dict[str, Any]:
    """The arrays of one context length, from context -> follower -> prob."""
    keys = sorted(rows)
    followers = [sorted(rows[key].items(), key=lambda one: one[1]) for key in keys]
    flat = [one for row in followers for one in row]
    return {
        f"keys{order}": np.array(keys, dtype=np.uint64 if order == "2" else np.uint32),
        f"starts{order}": np.cumsum([0, *map(len, followers)]).astype(np.uint32),
        f"next{order}": np.array([follower for follower, _ in flat], dtype=np.uint32),
        f"prob{order}": np.array([prob for _, prob in flat], dtype=np.uint8),
    }


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.integers(0, 1 << 18), ROW, min_size=1, max_size=8), st.data())
def test_what_is_packed_comes_back(singles: dict[int, dict[int, int]], data: st.DataObject) -> None:
    pairs = {}
    for last in data.draw(st.lists(st.sampled_from(sorted(singles)), max_size=6)):
        followers = data.draw(st.lists(st.sampled_from(sorted(singles[last])), min_size=1, unique=True))
        first = data.draw(st.integers(0, 1 << 18))
        pairs[(first << 32) + last] = {follower: data.draw(st.integers(0, 255)) for follower in followers}
    arrays = columns(singles, "1") | columns(pairs, "2") | {"meta": np.array('{"tokens": 3}')}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.npz"
        file.write_bytes(ngram_file.pack(arrays))
        unpacked = ngram_file.unpack(file)
    assert unpacked.keys() == arrays.keys()
    for name, values in arrays.items():
        assert unpacked[name].dtype == values.dtype, name
        assert unpacked[name].tolist() == values.tolist(), name


def test_a_follower_that_the_last_token_lacks_is_refused() -> None:
    arrays = columns({7: {1: 0}}, "1") | columns({(3 << 32) + 7: {2: 0}}, "2") | {"meta": np.array("{}")}
    with pytest.raises(AssertionError, match="does not follow"):
        ngram_file.pack(arrays)


@pytest.mark.parametrize("content", [b"", b"no table", b"\xfd7zXZ\x00\x00\x04 cut off"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(IntegrityError, match=r"t\.npz is damaged"):
        ngram_file.unpack(tmp_path / "t.npz")


def test_tokenizers_are_told_apart_by_ids_and_bytes() -> None:
    def printed(*pieces: bytes, size: int = 9) -> str:
        return ngram_file.fingerprint(lambda token_id: pieces[token_id] if token_id < len(pieces) else b"", size)

    assert printed(b"a", b"b") == printed(b"a", b"b", size=99)
    assert len({printed(b"a", b"b"), printed(b"b", b"a"), printed(b"ab"), printed(b"", b"ab"), printed()}) == 5
