#!/bin/bash
# Build Debian packages from wheels, and from those of the libraries that they need.
# Usage: make-debs.sh DIRECTORY RULES LIBRARIES WHEEL_MARK...
# RULES is the directory that dpkg calls debian; the variable PIP names the pip.
set -euo pipefail

main() {
    local target=$1 rules=$2 libraries=$3 source mark
    shift 3
    WHEELS=$(mktemp -d)
    source=$WHEELS/source
    trap 'rm -rf "$WHEELS"' EXIT
    cp "$libraries"/*.whl "$WHEELS/"
    for mark; do
        cp "$(dirname "$mark")"/*.whl "$WHEELS/"
    done
    mkdir -p "$source"
    cp -a docs scripts README.md LICENSE "$source/"
    cp -a "$rules" "$source/debian"
    cp -a debian/tidy-venv "$source/debian/"
    export WHEELS PIP
    (cd "$source" && dpkg-buildpackage --build=binary --no-sign --no-pre-clean) >"$WHEELS/log" 2>&1 || {
        tail -n 40 "$WHEELS/log" >&2
        exit 1
    }
    rm -rf "$target" && mkdir -p "$target"
    mv "$WHEELS"/*.deb "$target/"
}

main "$@"
