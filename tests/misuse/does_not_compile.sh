#!/usr/bin/env bash
# Checks does_not_compile.cpp: the lines without mistakes compile, and each mistake is an error on its line. Usage:
# does_not_compile.sh COMPILER [FLAG ...]
set -euo pipefail
source="$(dirname "$0")/does_not_compile.cpp"
compile() { LC_ALL=C "$@" -std=c++20 -fsyntax-only -Werror "$source" 2>&1; }

if ! good=$(compile "$@"); then
  printf 'expected the lines without mistakes to compile, got:\n%s\n' "$good" >&2
  exit 1
fi
if bad=$(compile "$@" -DWITH_MISTAKES); then
  echo "expected errors, got none" >&2
  exit 1
fi
bad=$(grep -vF '// refused: ' <<<"$bad")  # removes source lines that compiler messages quote
failed=0
while IFS=: read -r line text; do
  expected=${text##*// refused: }
  # The compiler names the line in the error itself. For an error of a template, the line is in "required from here"
  # below the error.
  if ! grep -qF "does_not_compile.cpp:$line:" <<<"$bad"; then
    echo "line $line should not compile, but it does:$text" >&2
    failed=1
  elif ! grep -qF "$expected" <<<"$bad"; then
    echo "line $line: expected a message with \"$expected\", got none" >&2
    failed=1
  fi
done < <(grep -n '// refused: ' "$source")
if grep -q 'unique_ptr.h.*error' <<<"$bad"; then
  echo "expected errors in the code of Plumb, got one in unique_ptr.h" >&2
  failed=1
fi
if [ $failed = 1 ]; then printf '%s\n' "$bad" >&2; fi
exit $failed
