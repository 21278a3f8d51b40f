#!/usr/bin/env bash
# Installs the system packages that Plumb needs (Debian 12, Ubuntu 24.04 and newer).
# Usage: tools/install.sh build|test      build: packages to build and run programs; test: the tests' packages too
set -euo pipefail

build=(g++ cmake ninja-build ccache libdnnl-dev libhwy-dev libfmt-dev nlohmann-json3-dev zlib1g-dev libpng-dev libjpeg-dev libboost-math-dev)
case "${1:-}" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${build[@]}" catch2 git doxygen xz-utils python3 python3-markdown python3-pygments) ;;
  *) sed -n 2,3p "$0" >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  cat >&2 <<'END'
error: this system has no apt-get, so nothing was installed. Plumb needs:
  a C++20 compiler with OpenMP (g++ 12 or newer), CMake 3.25, Ninja (ccache helps),
  oneDNN 2.6 or 3.x, Highway 1.0, fmt 9, nlohmann-json 3.11, zlib, libpng 1.6, libjpeg-turbo 2, Boost.Math 1.74; for the tests also Catch2 2.13 or 3,
  git, Doxygen, xz, and Python 3 with Markdown and Pygments.
Install them, then: cmake --preset release -DPLUMB_BUILD_TESTS=OFF && cmake --build --preset release
END
  exit 1
fi

is_installed() { [[ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" == *" ok installed" ]]; }
missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
# The tests open reports in a browser. If no browser can be installed, these tests are skipped.
browser=()
if [ "$1" = test ] && ! command -v chromium chromium-browser google-chrome >/dev/null && [ ! -e build/.no-browser ]; then
  browser=(chromium fonts-dejavu-core)
fi
[ ${#missing[@]} -eq 0 ] && [ ${#browser[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    [ ${#missing[@]} -eq 0 ] && exit 0
    echo "error: packages are missing and there is no root access; install them: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
if [ ${#browser[@]} -gt 0 ]; then
  echo "installing: ${browser[*]}" >&2
  if ! "${as_root[@]}" apt-get update -qq >&2 ||
    ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${browser[@]}" >/dev/null; then
    echo "no browser could be installed; tests that open reports will be skipped (rm build/.no-browser to try again)" >&2
    mkdir -p build && touch build/.no-browser
  fi
fi
