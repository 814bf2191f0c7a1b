#!/bin/bash
# Build the virtual environment from the lock file, from nothing.
# Usage: make-venv.sh DIRECTORY LOCK; the variable PYTHON may name the interpreter.
set -euo pipefail

recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

interpreter() {
    local candidate
    for candidate in ${PYTHON:-/usr/bin/python3 python3}; do
        if recent "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "No Python 3.11 or later found; name one: make PYTHON=/path/to/python3" >&2
    return 1
}

main() {
    local directory=$1 lock=$2 python
    if [ -L "$directory" ]; then # --clear would empty what it leads to
        echo "$directory is a link, and a build empties it: remove the link, or" \
            "build where it leads to" >&2
        return 1
    fi
    python=$(interpreter)
    echo "Building $directory with $("$python" --version) from $lock"
    # Emptied first, so that it holds what the lock file says and nothing else.
    "$python" -m venv --clear "$directory"
    # Wheels only: a bare machine has no compiler. The interpreter calls pip, because a
    # lock that pins pip replaces the program that is running.
    "$directory/bin/python" -m pip install -qq --disable-pip-version-check \
        --only-binary :all: --require-hashes -r "$lock"
}

main "$@"
