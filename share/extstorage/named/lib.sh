# SPDX-License-Identifier: BSD-2-Clause
# What all scripts of this provider share. Sourced, with the provider's directory as
# working directory: that is where the cluster starts every script.
#
# Words: an *image* is the file that holds a volume's data, called as its disk is
# (VOL_CNAME; without one, as the cluster does). Beside it are its *maker*, the uuid of the disk that it was made for, and
# its *epoch*, the highest one that was seen: who comes with a lower one was cut off.

set -eu
. ./etc/settings.sh

fail() {
    echo "named: $*" >&2
    exit 1
}

node=${VOL_NODE:-$(hostname)}
epoch=${VOL_EPOCH:-0}
open=${VOL_OPEN:-../../bin/moorage-open}
mib=1048576

name=${VOL_CNAME:-${VOL_NAME:-}}
case $name in
"") fail "no volume is named" ;;
*/* | .* | *.part | *.maker | *.epoch | *.info | *.new) fail "'$name' is not the name of a volume" ;;
esac
image=$IMAGE_DIR/$name

# Others may write to the directory of the images: every node that shares it. A link in
# the place of a file must lead nowhere. So the directory is opened once, and the image
# in it, and all that follows works on descriptors: 7 is the directory, 8 the image.
open_files() {
    export OPENED=$$
    [ ! -d "$IMAGE_DIR" ] ||
        set -- 7:dir:"$IMAGE_DIR/." 8:write:/proc/self/fd/7/"$name" "$@"
    exec "$open" "$@"
}
[ "${OPENED-}" = $$ ] || open_files -- "$0" "$@"
at=/proc/self/fd/7
opened=/proc/self/fd/8

# No mkdir: a file system that is not mounted must not be mistaken for an empty one.
need_dir() {
    [ -d "$at" ] || fail "there is no directory $IMAGE_DIR on node $node"
}

need_image() {
    [ -s "$opened" ] || fail "there is no image $image on node $node"
}

image_size() {
    stat --dereference --format %s -- "$opened"
}

# Print a small file; nothing of one that is not there. Whatever else is there, such as a
# device, is not even opened: that alone may do something.
see() {
    [ ! -f "$1" ] || dd if="$1" iflag=nofollow,nonblock bs=64k count=1 status=none 2>/dev/null || :
}

# Write a small file, whole or not at all, and so that it outlives a power cut.
put() {
    rm -f -- "$1.new"
    dd of="$1.new" oflag=nofollow conv=excl status=none
    sync -- "$1.new"
    mv -T -- "$1.new" "$1"
}

# One script at a time for one image, on all nodes that share it.
lock() {
    [ -e "$opened" ] || return 0
    exec 9<>"$opened"
    flock --wait 60 9 || fail "image $image is locked by another script"
}

# Refuse who was cut off: somebody else has had the volume since.
not_stale() {
    seen=$(see "$at/$name.epoch")
    [ "${seen:-0}" -le "$epoch" ] ||
        fail "volume $name was attached elsewhere with epoch $seen: epoch $epoch comes too late"
}

raise_epoch() {
    not_stale
    [ "${seen:-0}" -eq "$epoch" ] || echo "$epoch" | put "$at/$name.epoch"
}
