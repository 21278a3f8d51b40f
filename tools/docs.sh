#!/usr/bin/env bash
# Builds the documentation as a static site, build/docs/index.html: the Markdown pages, and a Doxygen reference of the
# public headers. Fails if a link has no target, if a public type or function has no comment, if the search does not find
# a page, or if the header of the reference is clipped.
# Usage: tools/docs.sh        needs doxygen, python3-markdown and python3-pygments (see tools/install.sh test)
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { sed -n 2,5p "$0" >&2; exit 2; }
for tool in doxygen /usr/bin/python3; do
  command -v "$tool" >/dev/null || { echo "error: $tool is missing; tools/install.sh test installs it" >&2; exit 1; }
done

site=build/docs
rm -rf "$site"
mkdir -p "$site"
/usr/bin/python3 tools/docs/public_headers.py > "$site/headers.txt"
{
  cat tools/docs/Doxyfile
  echo "INPUT = tools/docs/reference.dox $(tr '\n' ' ' < "$site/headers.txt")"
  echo "OUTPUT_DIRECTORY = $site"
  echo "GENERATE_TAGFILE = $site/tags.xml"
  echo "WARN_LOGFILE = $site/warnings.txt"
} | doxygen -

status=0
/usr/bin/python3 tools/docs/undocumented.py "$site/warnings.txt" || status=1
/usr/bin/python3 tools/docs/pages.py "$site" || status=1
/usr/bin/python3 tools/docs/links.py "$site" || status=1
/usr/bin/python3 tools/docs/search.py "$site" || status=1
/usr/bin/python3 tools/docs/header.py "$site" || status=1
[ "$status" -ne 0 ] || echo "$site/index.html"
exit "$status"
