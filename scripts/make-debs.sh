#!/bin/bash
# Build the Debian packages from the wheel and the libraries that it needs.
# Usage: make-debs.sh DIRECTORY WHEEL_MARK LIBRARIES; the variable PIP names the pip.
set -euo pipefail

main() {
    local target=$1 source
    WHEELS=$(mktemp -d)
    source=$WHEELS/source
    trap 'rm -rf "$WHEELS"' EXIT
    cp "$(dirname "$2")"/*.whl "$3"/*.whl "$WHEELS/"
    mkdir -p "$source"
    cp -a debian docs scripts README.md LICENSE "$source/"
    export WHEELS PIP
    (cd "$source" && dpkg-buildpackage --build=binary --no-sign --no-pre-clean) >"$WHEELS/log" 2>&1 || {
        tail -n 40 "$WHEELS/log" >&2
        exit 1
    }
    rm -rf "$target" && mkdir -p "$target"
    mv "$WHEELS"/*.deb "$target/"
}

main "$@"
