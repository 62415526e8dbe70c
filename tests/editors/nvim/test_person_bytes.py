"""What a person finds on the disk after a rewrite in files of all kinds: exactly the bytes that were meant."""

from __future__ import annotations

from collections.abc import Callable

from tests.editors.nvim.terminal import Terminal
from tests.fakes import fenced
from tests.lsp.scripted_lsp import Script

#: Files -> their bytes before and after the word is changed, which is all that the model changes.
FILES = {
    "crlf.py": b"def old():\r\n    return 1\r\n\r\n\r\nold()\r\n",
    "crlf_no_end.py": b"def old():\r\n    return 1\r\n\r\n\r\nold()",
    "tabs.py": b"def old():\n\tif True:\n\t\treturn 1\t# one\n\treturn 2\n\n\nold()\n",
    "emoji.py": 'old = "👩‍👩‍👧 naïve 漢字"  # 🎉\nb = 1\nc = 2\nd = 3\nprint("🎉", old)\n'.encode(),
    "no_end.py": b"def old():\n    return 1\n\n\nold()",
    "one_line.py": b"old = 1",
    "mixed.py": b"old = 1\r\nb = 2\nc = 3\r\nd = 4\ne = old\r\n",
    "form_feed.py": "old = 1\n\x0c\nb = '\u2028\u0085'\nc = 3\nd = 4\ne = old\n".encode(),
}


def meant(content: bytes) -> bytes:
    return content.replace(b"old", b"renewed")


def test_every_file_has_the_bytes_that_were_meant(person: Callable[..., Terminal]):
    script = Script(answers=[fenced(meant(content).decode()) for content in FILES.values()])
    nvim = person("", name="first.py", script=script, files=FILES)
    nvim.type(":set nofixendofline<CR>")
    for name, content in FILES.items():
        nvim.edit(name)
        nvim.type(":%SpecEdit Rename it<CR>")
        nvim.until("renewed")
        nvim.until(" change")
        nvim.type("gA")
        nvim.until_gone("old")
        assert nvim.save() == meant(content), name
        nvim.type("u")
        nvim.until_gone("renewed")
        assert nvim.save() == content, name
