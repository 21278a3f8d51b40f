#!/usr/bin/env bash
# Copies the example programs into README.md: each ```cpp block after a line <!-- examples/NAME.cpp --> is replaced by
# that file.
# Usage: tools/readme_snippets.sh [--check]      --check: changes nothing, fails if a block differs from its file
set -euo pipefail
cd "$(dirname "$0")/.."
updated=$(awk '
  /^<!-- examples\/.*\.cpp -->$/ { file = $2 }
  skipping { if (/^```$/) { skipping = 0; print } ; next }
  { print }
  /^```cpp$/ && file { while ((getline line < file) > 0) print line; close(file); file = ""; skipping = 1 }
' README.md)
if [ "${1:-}" = --check ]; then
  diff <(printf '%s\n' "$updated") README.md || { echo "README.md differs from the examples; run tools/readme_snippets.sh" >&2; exit 1; }
else
  printf '%s\n' "$updated" > README.md
fi
