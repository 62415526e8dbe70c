#!/usr/bin/env bash
# Sees to it that there is an Emacs with Eglot on the PATH; on Debian, as root, apt installs them.
set -euo pipefail

has_eglot() { emacs -q --batch --eval "(require 'eglot)" >/dev/null 2>&1; }

if ! has_eglot && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "Installing Emacs by apt" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update >&2
    apt-get -qq -y --no-install-recommends install emacs-nox >&2
    # Emacs 29 and newer bring it.
    has_eglot || apt-get -qq -y --no-install-recommends install elpa-eglot >&2
fi
has_eglot || {
    echo "No Emacs with Eglot was found. Install Emacs 29 or newer with your system's packages, or Emacs 28 and its" >&2
    echo "package eglot. To use one that is not on the PATH: SPECEDIT_TEST_EMACS=/path/to/emacs" >&2
    exit 1
}
emacs --version | head -1
