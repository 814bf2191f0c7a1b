#!/bin/bash
# Make the file system of a Debian 12 machine as an administrator gets it, with systemd,
# and with ssh by which root comes from one to the others. What the packages of Moorage
# depend on is there, too: three machines that install them need no network for it.
# Usage: make-debian-root.sh DIRECTORY
set -euo pipefail

SUITE=bookworm
MACHINE=systemd-sysv,dbus,iproute2,iputils-ping,ca-certificates,openssh-server
DEPENDS=python3,qemu-system-x86,qemu-utils

# The archive from which this machine has its own packages.
archive() {
    apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' "Codename: $SUITE" 'Component: main' | sed -n 1p
}

main() {
    local target=$1 draft=$1.new
    rm -rf "$draft"
    mkdir -p "$(dirname "$target")"
    mmdebstrap --quiet --variant=minbase --include="$MACHINE,$DEPENDS" \
        --dpkgopt=force-unsafe-io --aptopt='Acquire::Languages "none"' \
        --dpkgopt='path-exclude=/usr/share/locale/*' "$SUITE" "$draft" "$(archive)"
    chroot "$draft" systemctl --quiet mask console-getty.service
    mkdir -p -m 700 "$draft/root/.ssh"
    chroot "$draft" ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
    cp "$draft/root/.ssh/id_ed25519.pub" "$draft/root/.ssh/authorized_keys"
    echo 'StrictHostKeyChecking accept-new' >"$draft/root/.ssh/config"
    rm -rf "$target"
    mv "$draft" "$target"
}

main "$@"
