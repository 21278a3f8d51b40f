#!/usr/bin/env bash
# Copies the example programs into the Markdown pages. A page has a line <!-- examples/NAME.cpp --> and a ```cpp block
# on the next line. The script replaces the block with that file. The pages are README.md and all .md files below docs/.
# Usage: tools/readme_snippets.sh [--check]      --check changes nothing and fails if a block differs from its file
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t pages < <(grep -rl --include='*.md' '^<!-- examples/.*\.cpp -->$' README.md docs | sort)
status=0
for page in "${pages[@]}"; do
  updated=$(awk '
    function fail(text) { print FILENAME ":" NR ": " text > "/dev/stderr"; failed = 1; exit 1 }
    skipping { if (/^```$/) { skipping = 0; print } ; next }
    file && !/^```cpp$/ { fail("expected a ```cpp block right after the marker of " file) }
    { print }
    file {
      lines = 0
      while ((getline line < file) > 0) { print line; ++lines }
      if (!lines) fail("no such example: " file)
      close(file); file = ""; skipping = 1
    }
    /^<!-- examples\/.*\.cpp -->$/ { file = $2 }
    END { if (!failed && (file || skipping)) fail("the last block is not closed") }
  ' "$page")
  if [ "${1:-}" != --check ]; then
    printf '%s\n' "$updated" >"$page"
  elif ! diff -u --label "$page" --label "$page, with the examples as they are" "$page" <(printf '%s\n' "$updated"); then
    status=1
  fi
done
[ "$status" = 0 ] || echo "error: these pages differ from the examples; run tools/readme_snippets.sh" >&2
exit "$status"
