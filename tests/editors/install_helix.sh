#!/usr/bin/env bash
# Puts Helix of Debian sid into DIR, with the C library that it wants, and touches nothing else of this system.
# Usage: install_helix.sh DIR. What to run is DIR/hx. To have it anew, remove DIR.
set -euo pipefail
mkdir -p "${1:?usage: install_helix.sh DIR}"
dir=$(realpath "$1")
if "$dir/hx" --version 2>/dev/null; then exit; fi
if ! command -v dpkg-deb >/dev/null; then
    echo "Helix is taken from Debian's packages here. Install it yourself, and name it: SPECEDIT_TEST_HELIX=/path/to/hx" >&2
    exit 1
fi

mkdir -p "$dir"/{lists/partial,cache/archives/partial,debs,root}
mirror=$(awk '/^URIs:/{print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null || true)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] ${mirror:-http://deb.debian.org/debian} sid main" > "$dir/sources.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null
     -o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o "APT::Sandbox::User=$(id -un)"
     -o Acquire::Languages=none)
"${apt[@]}" update
(cd "$dir/debs" && "${apt[@]}" download hx/sid libc6/sid libgcc-s1/sid)
for deb in "$dir"/debs/*.deb; do dpkg-deb -x "$deb" "$dir/root"; done
rm -rf "$dir"/{lists,cache,debs,sources.list}

cat > "$dir/hx" <<'HX'
#!/usr/bin/env bash
# Only Helix itself gets the newer C library: what it starts keeps the system's.
root=$(dirname "$(realpath "$0")")/root
exec "$root"/usr/lib64/ld-linux-*.so.* --library-path "$(echo "$root"/usr/lib/*-linux-gnu)" "$root/usr/bin/hx" "$@"
HX
chmod +x "$dir/hx"
"$dir/hx" --version
