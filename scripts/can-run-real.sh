#!/bin/bash
# Whether this machine can run real guests: exit status 0, or one sentence that says why not.
set -euo pipefail

if [ "$(id -u)" -ne 0 ]; then
    echo "Real guests need root, and you are $(id -un); the same tour on simulated nodes is: make run SIM=1" >&2
    exit 1
fi
if ! "$(dirname "$0")/debian-packages.sh" real || ! command -v qemu-system-x86_64 >/dev/null; then
    echo "Real guests need QEMU (qemu-system-x86_64), which is not here; the same tour on simulated nodes is: make run SIM=1" >&2
    exit 1
fi
