#!/bin/bash
# Make the file system of a Debian 12 machine, as its installer leaves it, with systemd.
# What the packages of Moorage depend on is there, too: three machines that install it
# need no network for it.
# Usage: make-debian-root.sh DIRECTORY
set -euo pipefail

MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
MACHINE=systemd-sysv,dbus,iproute2,iputils-ping,ca-certificates,bash-completion
DEPENDS=python3,qemu-system-x86,qemu-utils

main() {
    local target=$1 draft=$1.new
    rm -rf "$draft"
    mkdir -p "$(dirname "$target")"
    mmdebstrap --quiet --variant=minbase --include="$MACHINE,$DEPENDS" \
        --dpkgopt=force-unsafe-io --aptopt='Acquire::Languages "none"' \
        --dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$draft" "$MIRROR"
    # No disk of a machine, and nothing to log in at.
    chroot "$draft" systemctl --quiet mask console-getty.service
    rm -rf "$target"
    mv "$draft" "$target"
}

main "$@"
