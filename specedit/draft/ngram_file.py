"""The files of static n-gram tables: small on disk, flat arrays in memory.

A follower of two tokens nearly always follows the last of them elsewhere too, so it is stored as its place among the
followers of that token. Contexts of two tokens stand by their last token, and what ascends is stored as differences.
The arrays are the columns of an uncompressed npz within xz, each split into planes of its bytes.
"""

from __future__ import annotations

import hashlib
import io
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from specedit.errors import IntegrityError

Arrays = dict[str, npt.NDArray[Any]]
IntArray = npt.NDArray[np.int64]


def unpack(path: Path) -> Arrays:
    """Read a table.

    Returns:
        keys2: uint64 [C2] ascending, first token * 2**32 + second.
        starts2: uint32 [C2 + 1]; followers of context i are `next2[starts2[i] : starts2[i + 1]]`.
        next2, prob2: uint32, uint8 [F2] followers in falling probability, which is exp(-prob / 32).
        keys1, starts1, next1, prob1: the same for contexts of one token; keys1 is uint32.
        meta: [] a JSON string {"tokenizer": fingerprint, "tokens": counted, "packages": [[name, version, licence]]}.

    Raises:
        IntegrityError: the file is damaged.
    """
    try:
        with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as stored:
            column = {name: _joined(stored[name]) for name in stored.files if name != "meta"}
            meta = stored["meta"]
    except (lzma.LZMAError, ValueError, EOFError, KeyError) as error:
        raise IntegrityError(f"the n-gram table {path} is damaged ({error}). Install specedit again.") from error
    keys1, starts1 = np.cumsum(column["keys1"]), _starts(column["counts1"])
    next1, prob1 = column["next1"], _summed(column["prob1"], column["counts1"])
    second = np.repeat(np.arange(len(keys1)), column["contexts"])  # [C2] the place of each context's last token
    keys2 = (_summed(column["first"], column["contexts"]) << 32) + keys1[second]
    counts2, prob2 = column["counts2"], _summed(column["prob2"], column["counts2"])
    next2 = next1[np.repeat(starts1[second], counts2) + column["place2"]]
    order = np.argsort(keys2, kind="stable")
    starts2 = _starts(counts2[order])
    rows = np.arange(len(next2)) + np.repeat(_starts(counts2)[order] - starts2[:-1], counts2[order])
    pairs: Arrays = {"keys2": keys2[order].astype(np.uint64), "starts2": starts2.astype(np.uint32)}
    pairs |= {"next2": next2[rows].astype(np.uint32), "prob2": prob2[rows].astype(np.uint8)}
    singles: Arrays = {"keys1": keys1.astype(np.uint32), "starts1": starts1.astype(np.uint32)}
    return pairs | singles | {"next1": next1.astype(np.uint32), "prob1": prob1.astype(np.uint8), "meta": meta}


def pack(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """The content of a table's file, from the arrays that `unpack` returns.

    Each follower in `next2` has to be one of the last token's in `next1`.
    """
    keys1, keys2 = arrays["keys1"].astype(np.int64), arrays["keys2"].astype(np.int64)
    starts1, starts2 = arrays["starts1"].astype(np.int64), arrays["starts2"].astype(np.int64)
    counts1, counts2 = sizes_of(starts1), sizes_of(starts2)
    next1, next2 = arrays["next1"].astype(np.int64), arrays["next2"].astype(np.int64)
    order = np.lexsort((keys2 >> 32, keys2 & 0xFFFFFFFF))  # by last token, then by first
    second = np.searchsorted(keys1, keys2[order] & 0xFFFFFFFF)
    contexts = np.bincount(second, minlength=len(keys1))
    sizes = counts2[order]
    rows = np.arange(len(next2)) + np.repeat(starts2[:-1][order] - _starts(sizes)[:-1], sizes)
    known = (np.repeat(np.arange(len(keys1)), counts1) << 32) + next1
    sorting = np.argsort(known)
    wanted = (np.repeat(second, sizes) << 32) + next2[rows]
    assert np.isin(wanted, known).all(), "a follower of two tokens does not follow the last of them"
    found = sorting[np.searchsorted(known, wanted, sorter=sorting)]
    columns = {
        "keys1": _differences(keys1, np.array([len(keys1)])),
        "counts1": counts1,
        "next1": next1,
        "prob1": _differences(arrays["prob1"], counts1),
        "contexts": contexts,
        "first": _differences(keys2[order] >> 32, contexts),
        "counts2": sizes,
        "place2": found - np.repeat(starts1[second], sizes),
        "prob2": _differences(arrays["prob2"][rows], sizes),
    }
    buffer = io.BytesIO()
    planes: Arrays = {name: _planes(values) for name, values in columns.items()}
    np.savez(buffer, allow_pickle=False, meta=arrays["meta"], **planes)
    return lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def sizes_of(starts: IntArray) -> IntArray:
    """[C] how many followers each context has, from starts [C + 1]."""
    return starts[1:] - starts[:-1]


def fingerprint(token_bytes: Callable[[int], bytes], size: int) -> str:
    """What tells tokenizers apart: SHA-256 over ids and bytes of all tokens.

    Args:
        token_bytes: the bytes that a token id stands for; none for an id without a token.
        size: all ids are below it; how far makes no difference.
    """
    digest = hashlib.sha256()
    for token_id in range(size):
        if piece := token_bytes(token_id):
            digest.update(token_id.to_bytes(4, "little") + len(piece).to_bytes(4, "little") + piece)
    return digest.hexdigest()


def _planes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """[bytes, N] the low bytes first; as many planes as the largest value needs."""
    planes = np.ascontiguousarray(values.astype("<u4")).view(np.uint8).reshape(-1, 4).T
    return np.ascontiguousarray(planes[: max(1, (int(values.max(initial=0)).bit_length() + 7) // 8)])


def _joined(planes: npt.NDArray[np.uint8]) -> IntArray:
    values = np.zeros(planes.shape[1], dtype=np.int64)
    for place, plane in enumerate(planes):
        values += plane.astype(np.int64) << (8 * place)
    return values


def _starts(counts: IntArray) -> IntArray:
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _differences(values: npt.NDArray[Any], counts: IntArray) -> IntArray:
    """Each value less the one before it in its row; the first of a row as it is."""
    differences: IntArray = values.astype(np.int64)
    differences[1:] -= values[:-1].astype(np.int64)
    firsts = _starts(counts)[:-1][counts > 0]
    differences[firsts] = values[firsts]
    return differences


def _summed(differences: IntArray, counts: IntArray) -> IntArray:
    totals: IntArray = np.cumsum(differences)
    before = _starts(differences)[_starts(counts)[:-1]]
    return totals - np.repeat(before, counts)
