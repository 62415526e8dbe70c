import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from specedit.edit.files import check_writable, project_root, read_file, write_file
from specedit.errors import FileError, RefusedFileError, StaleFileError


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()
    return tmp_path


@pytest.fixture
def file(project):
    path = project / "a.py"
    path.write_bytes(b"old\n")
    return path


def run_python(code, *arguments, **options):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def leftovers(directory):
    return [path.name for path in directory.iterdir() if ".specedit-" in path.name]


# Reading


def test_a_snapshot_is_the_file_as_it_is(file):
    file.chmod(0o640)
    snapshot = read_file(file)
    assert (snapshot.path, snapshot.target, snapshot.data, snapshot.mode) == (file, file, b"old\n", 0o640)


def test_the_root_is_the_nearest_git_directory_of_the_path_as_typed(project, monkeypatch):
    (project / "sub" / "deep").mkdir(parents=True)
    assert project_root(project / "sub" / "deep" / "a.py") == project
    assert project_root(project / "sub") == project
    (project / "sub" / ".git").write_text("gitdir: elsewhere")
    assert project_root(project / "sub" / "deep" / "a.py") == project / "sub"
    monkeypatch.chdir(project / "sub" / "deep")
    assert project_root(Path("../../a.py")) == project
    (project / "sub" / "link.py").symlink_to(project / "a.py")
    assert project_root(Path("../link.py")) == project / "sub"


def test_without_git_the_root_is_the_files_own_directory(tmp_path):
    assert project_root(tmp_path / "a.py") == tmp_path


def test_what_is_no_file_is_refused_with_its_path(project):
    os.mkfifo(project / "pipe")
    (project / "nowhere").symlink_to("missing")
    (project / "loop").symlink_to("loop")
    for name, reason in {
        "missing.py": "doesn't exist",
        "nowhere": "link to nothing",
        "loop": "can't be reached",
        ".git": "is a directory",
        "pipe": "not a regular file",
    }.items():
        with pytest.raises(FileError, match=rf"{name} .*{reason}"):
            read_file(project / name)


def test_a_link_out_of_the_root_is_refused_and_one_within_is_read(project, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "b.py").write_bytes(b"b")
    (project / "src").mkdir()
    (project / "src" / "c.py").write_bytes(b"c")
    (project / "out.py").symlink_to(elsewhere / "b.py")
    (project / "out").symlink_to(elsewhere)
    (project / "in.py").symlink_to("src/c.py")
    (project / "in").symlink_to("src")
    for name in ("out.py", "out/b.py"):
        with pytest.raises(RefusedFileError, match=r"outside .*its own path"):
            read_file(project / name)
    for name in ("in.py", "in/c.py"):
        snapshot = read_file(project / name)
        assert (snapshot.path, snapshot.target) == (project / name, project / "src" / "c.py")
    with pytest.raises(RefusedFileError, match="outside"):
        read_file(project / "in.py", root=elsewhere)


def test_a_root_that_is_itself_a_link_is_no_escape(project, tmp_path_factory, file):
    link = tmp_path_factory.mktemp("links") / "project"
    link.symlink_to(project)
    assert read_file(link / "a.py").target == file


def test_secrets_are_refused_by_the_name_of_link_or_target(project):
    (project / ".env").write_text("KEY=1")
    (project / "settings.txt").symlink_to(".env")
    (project / "plain.txt").write_text("x")
    (project / "server.PEM").symlink_to("plain.txt")
    (project / ".env.example").write_text("KEY=")
    for name in (".env", "settings.txt", "server.PEM"):
        with pytest.raises(RefusedFileError, match="secret"):
            read_file(project / name, allow_ignored=True)
    assert read_file(project / ".env.example").data == b"KEY="
    with pytest.raises(RefusedFileError, match=r"plain\.\* |plain"):
        read_file(project / "plain.txt", secret_patterns=["Plain.*"])


def test_ignored_files_need_a_flag(project):
    (project / ".gitignore").write_text("build/\n*.log\n")
    (project / "build").mkdir()
    for name in ("build/a.py", "x.log"):
        (project / name).write_bytes(b"x")
        with pytest.raises(RefusedFileError, match=r"ignored by .*\.gitignore.*--allow-ignored"):
            read_file(project / name)
        assert read_file(project / name, allow_ignored=True).data == b"x"
    (project / "link.py").symlink_to("build/a.py")
    with pytest.raises(RefusedFileError, match="ignored"):
        read_file(project / "link.py")


def test_large_files_are_refused_with_the_numbers(file):
    file.write_bytes(b"x" * 1001)
    with pytest.raises(RefusedFileError, match=r"1,001 bytes.*1,000"):
        read_file(file, max_file_bytes=1000)
    assert len(read_file(file, max_file_bytes=1001).data) == 1001


# Writing


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o600, 0o644, 0o444 | 0o200, 0o2755, 0o060])
def test_the_mode_stays_exactly(file, mode):
    file.chmod(mode)
    write_file(read_file(file), b"new\n")
    assert file.read_bytes() == b"new\n"
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert leftovers(file.parent) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_temporary_file_is_never_wider_than_the_file(file, mode, monkeypatch):
    file.chmod(mode)
    seen = []
    for name in ("fchown", "fchmod", "fsync", "replace"):
        real = getattr(os, name)

        def look(*arguments, real=real, **options):
            seen.extend((file.parent / name).stat().st_mode for name in leftovers(file.parent))
            return real(*arguments, **options)

        monkeypatch.setattr(os, name, look)
    old_mask = os.umask(0)
    try:
        write_file(read_file(file), b"new\n")
    finally:
        os.umask(old_mask)
    assert seen
    assert all(stat.S_IMODE(each) & ~mode == 0 for each in seen)


def test_a_mode_narrowed_meanwhile_stays_narrow(file):
    file.chmod(0o644)
    snapshot = read_file(file)
    file.chmod(0o600)
    write_file(snapshot, b"new\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owner_and_group_stay(file):
    os.chown(file, 1234, 4321)
    file.chmod(0o2754)
    write_file(read_file(file), b"new\n")
    status = file.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 4321, 0o2754)


def test_a_group_that_can_not_be_kept_is_refused(file, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    snapshot = read_file(file)
    real = file.stat()
    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((*real[:5], real.st_gid + 1, *real[6:])))
    with pytest.raises(RefusedFileError, match=r"a\.py belongs to user .* group .*can't be kept"):
        write_file(snapshot, b"new\n")
    assert file.read_bytes() == b"old\n"
    assert leftovers(file.parent) == []


@pytest.mark.skipif(sys.platform != "linux", reason="extended attributes are read on Linux only")
def test_extended_attributes_stay(file):
    try:
        os.setxattr(file, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    write_file(read_file(file), b"new\n")
    assert os.getxattr(file, "user.note") == b"kept"


def test_links_stay_links_and_the_target_changes(project):
    (project / "src").mkdir()
    target = project / "src" / "b.py"
    target.write_bytes(b"old")
    (project / "link.py").symlink_to("src/b.py")
    (project / "folder").symlink_to("src")
    write_file(read_file(project / "link.py"), b"new")
    assert (project / "link.py").is_symlink()
    assert target.read_bytes() == b"new"
    write_file(read_file(project / "folder" / "b.py"), b"newer")
    assert (project / "folder").is_symlink()
    assert target.read_bytes() == b"newer"
    assert leftovers(project) == leftovers(project / "src") == []


def test_hard_links_are_refused(file):
    os.link(file, file.with_name("b.py"))
    with pytest.raises(RefusedFileError, match="2 hard links"):
        write_file(read_file(file), b"new\n")
    assert file.read_bytes() == file.with_name("b.py").read_bytes() == b"old\n"


def test_a_read_only_file_is_refused_even_for_root(file):
    file.chmod(0o444)
    snapshot = read_file(file)
    for refused in (lambda: check_writable(snapshot), lambda: write_file(snapshot, b"new\n")):
        with pytest.raises(RefusedFileError, match=r"a\.py is read-only.*chmod"):
            refused()
    assert file.read_bytes() == b"old\n"


def test_a_read_only_directory_is_refused(project):
    folder = project / "src"
    folder.mkdir()
    (folder / "a.py").write_bytes(b"old\n")
    snapshot = read_file(folder / "a.py")
    folder.chmod(0o555)
    try:
        with pytest.raises(RefusedFileError, match=r"directory .*src is read-only.*chmod"):
            write_file(snapshot, b"new\n")
    finally:
        folder.chmod(0o755)
    assert (folder / "a.py").read_bytes() == b"old\n"


def test_equal_bytes_are_not_written(file):
    os.utime(file, ns=(1, 1))
    before = file.stat()
    write_file(read_file(file), b"old\n")
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_file_changed_meanwhile_is_stale(file):
    snapshot = read_file(file)
    file.write_bytes(b"theirs\n")
    with pytest.raises(StaleFileError, match=r"a\.py has changed on disk"):
        write_file(snapshot, b"new\n")
    assert file.read_bytes() == b"theirs\n"
    assert leftovers(file.parent) == []


def test_a_file_removed_or_a_link_moved_meanwhile_is_stale(project, file):
    (project / "b.py").write_bytes(b"old\n")
    link = project / "link.py"
    link.symlink_to("a.py")
    through_link, snapshot = read_file(link), read_file(file)
    link.unlink()
    link.symlink_to("b.py")
    with pytest.raises(StaleFileError):
        write_file(through_link, b"new\n")
    file.unlink()
    with pytest.raises(StaleFileError, match="removed"):
        write_file(snapshot, b"new\n")
    assert (project / "b.py").read_bytes() == b"old\n"
    assert not file.exists()
    assert leftovers(project) == []


def test_a_name_as_long_as_can_be(project):
    path = project / ("é" * 126 + ".py")
    path.write_bytes(b"old")
    write_file(read_file(path), b"new")
    assert path.read_bytes() == b"new"
    assert leftovers(project) == []


@pytest.mark.parametrize("step", ["fchmod", "fsync", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "Input/output error"), SystemExit(143)])
def test_whatever_is_raised_nothing_is_left(file, monkeypatch, step, error):
    def fail(*_, **__):
        raise error

    snapshot = read_file(file)
    monkeypatch.setattr(os, step, fail)
    with pytest.raises((FileError, KeyboardInterrupt, SystemExit)):
        write_file(snapshot, b"new\n")
    assert file.read_bytes() == b"old\n"
    assert leftovers(file.parent) == []


WRITE = """
import sys
from pathlib import Path
from specedit.edit.files import read_file, write_file
from specedit.errors import FileError
try:
    write_file(read_file(Path(sys.argv[1])), b"n" * int(sys.argv[2]))
except FileError as error:
    print(type(error).__name__, error)
"""


def test_a_size_limit_leaves_the_old_file(file):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    result = run_python(WRITE, file, 100_000, preexec_fn=limit)
    assert "FileError" in result.stdout
    assert "no space" in result.stdout
    assert "Nothing was changed" in result.stdout
    assert file.read_bytes() == b"old\n"
    assert leftovers(file.parent) == []


def test_a_full_disk_leaves_the_old_file(tmp_path):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        path = tmp_path / "a.py"
        path.write_bytes(b"old\n")
        with pytest.raises(FileError, match="no space is left"):
            write_file(read_file(path), b"n" * 200_000)
        assert path.read_bytes() == b"old\n"
        assert leftovers(tmp_path) == []
        write_file(read_file(path), b"new\n")
        assert path.read_bytes() == b"new\n"
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_after_kill_the_file_is_whole_and_the_next_write_cleans_up(file):
    """Stopped for good at each step in turn: what stays is a temporary file at most."""
    for step in ("write", "fchmod", "fsync", "replace"):
        result = run_python(
            """
            import os, signal, sys
            from pathlib import Path
            from specedit.edit import files
            snapshot = files.read_file(Path(sys.argv[1]))
            die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
            if sys.argv[2] == "write":
                files._write_all = die
            else:
                setattr(os, sys.argv[2], die)
            files.write_file(snapshot, b"new")
            """,
            file,
            step,
        )
        assert result.returncode == -signal.SIGKILL
        assert file.read_bytes() == b"old\n"
        (left,) = leftovers(file.parent)
        assert left.startswith(".a.py.specedit-")
        assert left.endswith(".tmp")
        write_file(read_file(file), b"new\n")
        assert leftovers(file.parent) == []
        file.write_bytes(b"old\n")


def test_killed_at_random_moments_the_file_is_wholly_old_or_new(file):
    code = """
        import sys
        from pathlib import Path
        from specedit.edit.files import read_file, write_file
        path, texts = Path(sys.argv[1]), (b"o" * 200_000, b"n" * 300_000)
        print("ready", flush=True)
        while True:
            snapshot = read_file(path)
            write_file(snapshot, texts[snapshot.data == texts[0]])
    """
    file.write_bytes(b"o" * 200_000)
    for pause_ms in (1, 20, 53, 117):
        with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), file], stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(pause_ms / 1000)
            assert process.poll() is None
            process.kill()
        assert file.read_bytes() in (b"o" * 200_000, b"n" * 300_000)
        assert len(leftovers(file.parent)) <= 1


def test_a_living_writers_temporary_file_is_not_touched(file):
    ours = file.with_name(f".a.py.specedit-{os.getppid()}-0123456789abcdef.tmp")
    other_file = file.with_name(".b.py.specedit-999999999-0123456789abcdef.tmp")
    ours.write_bytes(b"")
    other_file.write_bytes(b"")
    write_file(read_file(file), b"new\n")
    assert ours.exists()
    assert other_file.exists()


def test_of_two_writers_at_once_one_wins_and_the_other_is_told(file, monkeypatch):
    """Both have passed every check but the last when they start to replace the file."""
    both_ready = threading.Barrier(2)
    real_sync, real_replace = os.fsync, os.replace

    def sync(descriptor):
        real_sync(descriptor)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            both_ready.wait(10)

    def replace(*arguments, **options):
        time.sleep(0.1)
        real_replace(*arguments, **options)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    snapshot = read_file(file)
    outcomes = {}

    def write(data):
        try:
            write_file(snapshot, data)
            outcomes[data] = "written"
        except StaleFileError:
            outcomes[data] = "stale"

    writers = [threading.Thread(target=write, args=(data,)) for data in (b"one\n", b"two\n")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(outcomes.values()) == ["stale", "written"]
    assert outcomes[file.read_bytes()] == "written"
    assert leftovers(file.parent) == []
