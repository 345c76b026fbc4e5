#!/bin/sh
# Runs the tests of the console: types, format, modules, and the embedded console in a browser.
set -eu
cd "$(dirname "$0")"
if [ ! -d node_modules ] || [ ! -f dist/index.html ]; then
    echo "console: not built (npm is not installed); its tests are skipped" >&2
    exit 0
fi
npm run --silent check
npm test --silent
if ! command -v "${CHROMIUM:-chromium}" >/dev/null 2>&1; then
    echo "console: no Chromium; the tests in a browser are skipped" >&2
    exit 0
fi
TIDALITE_CONSOLE=embedded exec node --test ../tests/console/*.test.mjs
