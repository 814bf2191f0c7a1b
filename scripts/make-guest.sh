#!/bin/bash
# Build the small guest's kernel and initrd.
# Usage: make-guest.sh PYTHON DIRECTORY
# The kernel comes from Debian's archive, so an absent or old package list is renewed once.
set -euo pipefail

build() {
    "$1" -m moorage.testing.guest_image build "$2"
}

if [ ! -d "$2/kernel" ] && ! build "$@" 2>/dev/null; then
    apt-get -qq update
fi
build "$@"
