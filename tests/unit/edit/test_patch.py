import subprocess

import pytest

from specedit.edit.patch import patch_name, unified_patch


def test_equal_bytes_give_no_patch():
    assert unified_patch(b"a\n", b"a\n", "a.txt") == b""


def test_lines_without_an_end_are_marked():
    assert unified_patch(b"a\nb", b"a\nc", "a.txt").endswith(
        b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
    )


def test_a_name_with_blanks_ends_with_a_tab_as_git_writes_it():
    assert b"\n--- a/my area.py\t\n+++ b/my area.py\t\n" in unified_patch(b"a\n", b"b\n", "my area.py")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"", b"a\n"),
        (b"a\n", b""),
        (b"a\n", b"a"),
        (b"a", b"a\n"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        (b"a\rb\rc\n", b"a\rd\rc\n"),
        (b"caf\xe9\nx\n", b"caf\xe9\ny\n"),
        (b"\n" * 500 + b"a\n", b"b\n" + b"\n" * 499 + b"a\n"),
    ],
)
def test_git_makes_the_new_bytes_of_the_old(tmp_path, old, new):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    file = tmp_path / "a.txt"
    file.write_bytes(old)
    (tmp_path / "a.patch").write_bytes(unified_patch(old, new, "a.txt"))
    subprocess.run(["git", "apply", "a.patch"], cwd=tmp_path, check=True)
    assert file.read_bytes() == new


def test_names_are_relative_to_the_repository_of_the_file_itself(tmp_path, monkeypatch):
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/sub").mkdir()
    (tmp_path / "repo/sub/a.py").write_text("")
    (tmp_path / "repo/link.py").symlink_to("sub/a.py")
    assert patch_name(tmp_path / "repo/sub/a.py") == "sub/a.py"
    assert patch_name(tmp_path / "repo/link.py") == "sub/a.py"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loose").mkdir()
    (tmp_path / "loose/b.py").write_text("")
    assert patch_name(tmp_path / "loose/b.py") == "loose/b.py"
