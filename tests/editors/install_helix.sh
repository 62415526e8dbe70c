#!/usr/bin/env bash
# Puts Helix of Debian's sid into DIR/helix, with the C library that it wants, and touches nothing else of this system.
# Usage: install_helix.sh DIR. What to run is DIR/helix/hx; elsewhere than on Debian it is the hx on the PATH.
set -euo pipefail

mkdir -p "${1:?usage: install_helix.sh DIR}/helix"
dir=$(cd "$1/helix" && pwd)
if "$dir/hx" --version 2>/dev/null; then exit; fi
keyring=$(ls /usr/share/keyrings/debian-archive-keyring.{gpg,pgp} 2>/dev/null | head -1 || true)
if [ -z "$keyring" ] || ! command -v apt-get dpkg-deb >/dev/null; then
    hx --version 2>/dev/null && exit
    echo "This is no Debian, whose package of Helix is used. Install Helix so that hx is on your PATH," >&2
    echo "or name one: SPECEDIT_TEST_HELIX=/path/to/hx" >&2
    exit 1
fi

echo "Installing Helix into $dir" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,debs}
# The mirror that this system uses may be the only one in reach.
mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
    grep -v '^ *#' | grep -oE 'https?://[^ ]*/debian/?( |$)' | head -1 | tr -d ' ' || true)
echo "deb [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian} sid main" > "$work/sources.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o Debug::NoLocking=1
    -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=3)
"${apt[@]}" update >&2
(cd "$work/debs" && "${apt[@]}" download hx/sid libc6/sid libgcc-s1/sid >&2)
rm -rf "$dir/root"
for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$dir/root"; done

# Run by its own loader: what Helix starts keeps the system's C library.
loader=$(find "$dir/root" -name 'ld-linux-*.so.*' | head -1)
libraries=$(dirname "$(find "$dir/root" -name libc.so.6 | head -1)")
cat > "$dir/hx" <<HX
#!/bin/sh
export HELIX_RUNTIME="\${HELIX_RUNTIME:-$dir/root/usr/lib/hx/runtime}"
exec "$loader" --library-path "$libraries" "$dir/root/usr/bin/hx" "\$@"
HX
chmod +x "$dir/hx"
"$dir/hx" --version
