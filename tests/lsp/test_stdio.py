"""What comes in over stdin: messages, and what is none."""

from __future__ import annotations

import io

import pytest

from specedit_lsp import stdio


def taken(data: bytes) -> tuple[list[bytes], list[str]]:
    problems: list[str] = []
    return list(stdio.bodies(io.BytesIO(data), problems.append)), problems


def message(body: bytes, head: bytes = b"Content-Length: %d\r\n\r\n") -> bytes:
    return head % len(body) + body


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: %d\r\n\r\n",
        b"content-length:%d\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        b"Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc\r\n\r\n",
        b"Content-Length: %d\n\n",
    ],
)
def test_messages_with_any_heads(head: bytes) -> None:
    assert taken(message(b"{1}", head) + message(b"", head) + message("é\r\n\r\n".encode(), head)) == (
        [b"{1}", b"", "é\r\n\r\n".encode()],
        [],
    )


def test_what_is_no_message_is_skipped() -> None:
    found, problems = taken(
        b"hello\nworld\r\n\xff\xfe\n" + message(b"{1}") + b"Content-Length: x\r\n\r\n" + message(b"{2}")
    )
    assert found == [b"{1}", b"{2}"]
    assert problems


def test_a_length_beyond_all_measure_is_skipped_and_what_follows_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_MESSAGE_BYTES", 100)
    found, problems = taken(message(b"x" * 5000) + message(b"{2}"))
    assert found == [b"{2}"]
    assert "5,000 bytes" in problems[0]


def test_an_absurd_length_costs_no_memory() -> None:
    assert taken(b"Content-Length: 999999999999999999\r\n\r\n{}")[0] == []


def test_a_message_that_is_cut_off_is_none() -> None:
    assert taken(b"Content-Length: 10\r\n\r\n{}") == ([], [])
    assert taken(b"Content-Length: 10") == ([], [])


class _Closed(io.BytesIO):
    def flush(self) -> None:
        raise BrokenPipeError


def test_writing_to_nobody_is_no_error() -> None:
    writer = stdio.Writer(_Closed())
    writer.write(b"one")
    writer.write(b"two")
    writer.close()
    assert writer.broken
