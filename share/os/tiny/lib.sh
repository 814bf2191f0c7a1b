# SPDX-License-Identifier: BSD-2-Clause
# What all scripts of this definition share. Sourced, with the definition's directory as
# working directory.

set -eu

fail() {
    echo "tiny: $*" >&2
    exit 1
}

image=${OSP_IMAGE:-$PWD/image.raw}

# Print how many bytes a path or URI holds.
size_of() {
    qemu-img info --force-share --output json -f raw -- "$1" |
        awk -F '[:,]' '/"virtual-size"/ { print $2 + 0; exit }'
}

# Write a raw file to a disk that exists, without changing the disk's size.
write_to() {
    qemu-img convert -n -f raw -O raw -- "$1" "$2"
}
