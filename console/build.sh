#!/bin/sh
# Builds console/dist if npm is installed and a source is newer than the last build.
set -eu
cd "$(dirname "$0")"
if ! command -v npm >/dev/null 2>&1; then
    echo "console: npm is not installed; the server will serve a plain page" >&2
    exit 0
fi
if ! node -e 'const [major, minor] = process.versions.node.split("."); process.exit(+major > 20 || (+major === 20 && +minor >= 19) ? 0 : 1)'; then
    echo "console: Node.js $(node --version) is older than 20.19; the server will serve a plain page" >&2
    exit 0
fi
newer() {
    find . -path ./node_modules -prune -o -path ./dist -prune -o -type f -newer dist/index.html -print | head -n 1
}
if [ -f dist/index.html ] && [ -z "$(newer)" ]; then
    exit 0
fi
if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    npm ci --no-audit --no-fund --ignore-scripts --prefer-offline
fi
npm run --silent build
# The last file written: a failed build is repeated.
touch dist/index.html
