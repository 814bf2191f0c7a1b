# SPDX-License-Identifier: BSD-2-Clause
# What all scripts of this provider share. Sourced, with the provider's directory as
# working directory: that is where the cluster starts every script.
#
# Words: an *image* is the file that holds a volume's data. A *record* is a file that
# names the loop device which serves a volume on one node; several nodes can live on one
# machine, and each has its own device.

set -eu
. ./etc/settings.sh

fail() {
    echo "loop: $*" >&2
    exit 1
}

: "${VOL_NAME:?no volume is named}"
case $VOL_NAME in
*/* | .*) fail "'$VOL_NAME' is not the name of a volume" ;;
esac

dir=${EXTP_DIR:-$IMAGE_DIR}
direct=${EXTP_DIRECT:-$DIRECT_IO}
node=${VOL_NODE:-$(hostname)}
image=$dir/$VOL_NAME
run=${EXTP_RUN:-$RUN_DIR}
open=${VOL_OPEN:-../../bin/moorage-open}
mib=1048576

# Others may write to the directory of the images: every node that shares it. A link in
# the place of a file must lead nowhere. So the directories are opened once, and the
# image in its directory, and all that follows works on descriptors:
#   5  the directory `run`      7  the directory of the images
#   6  this node's part of it   8  the image, if there is one

# Print where a parameter's directory is: for one of a disk's own, the node looks at its
# list, and hands it over open (none, if it is not there). What etc/settings.sh says is
# the administrator's word.
place() {
    if [ "$1" = "$2" ]; then
        echo "$2"
    elif [ -n "${3+set}" ]; then
        echo "$3"
    else
        fail "nobody opens $1 for this script: without that, it works in $2 alone"
    fi
}

# Start this script anew, with the directories and the image open.
open_files() {
    at=$(place "$dir" "$IMAGE_DIR" ${VOL_AT_DIR+"$VOL_AT_DIR"})
    at_run=$(place "$run" "$RUN_DIR" ${VOL_AT_RUN+"$VOL_AT_RUN"})
    export OPENED=$$
    [ -z "$at" ] || [ ! -d "$at" ] ||
        set -- 7:dir:"$at/." 8:write:/proc/self/fd/7/"$VOL_NAME" "$@"
    if [ "$VOL_NAME" != none ]; then
        [ "$run" != "$RUN_DIR" ] || mkdir -p -- "$run"
        [ -n "$at_run" ] || fail "there is no directory $run on node $node"
        mkdir -- "$at_run/$node" 2>/dev/null || :
        set -- 5:dir:"$at_run/." 6:dir:/proc/self/fd/5/"$node" "$@"
    fi
    exec "$open" "$@"
}
[ "${OPENED-}" = $$ ] || open_files -- "$0" "$@"
at=/proc/self/fd/7
at_run=/proc/self/fd/6
opened=/proc/self/fd/8

# No mkdir: a shared file system that is not mounted must not be mistaken for an empty one.
need_dir() {
    [ -d "$at" ] || fail "there is no directory $dir on node $node"
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

record=$at_run/$VOL_NAME

# One script at a time on this machine.
lock() {
    exec 9</proc/self/fd/5 # the directory itself: no file, so no link
    flock --wait 60 9 || fail "another script holds $run"
}

note() {
    echo "$1" | put "$record"
}

noted() {
    see "$record"
}

# Print the loop devices that serve the whole image, for writing, on this machine. One
# that vanishes as soon as its last user closes it does not count.
devices() {
    [ -e "$opened" ] || return 0
    losetup --noheadings --raw --output NAME,AUTOCLEAR,OFFSET,SIZELIMIT,RO \
        --associated "$opened" | awk '$2 + $3 + $4 + $5 == 0 { print $1 }'
}

# Whether a device still serves the image, in whatever way.
serves() {
    [ -n "$1" ] && [ -e "$opened" ] &&
        losetup --noheadings --raw --output NAME --associated "$opened" |
        grep -qFx -- "$1"
}

# Take a loop device and print it. losetup looks for the path of what it is given, and
# opens that; so see by its inode that it is the image, before anybody gets the device.
take() {
    taken=$(losetup --find --show --direct-io="$direct" -- "$opened")
    if ! serves "$taken"; then
        losetup --detach "$taken"
        fail "there was another file at $image when device $taken was made of it"
    fi
    echo "$taken"
}

# Whether a record of any node on this machine names a device.
known() {
    for other in /proc/self/fd/5/*/"$VOL_NAME"; do
        [ "$(see "$other")" != "$1" ] || return 0
    done
    return 1
}

# Print this node's device. The record says "taking" while a device is taken: then one
# that no record of any node names was left by a run that was interrupted. At any other
# time such a device is somebody else's, and none of our business.
device() {
    noted=$(noted)
    unknown=
    for one in $(devices); do
        if [ "$one" = "$noted" ]; then
            echo "$one"
            return
        fi
        known "$one" || unknown=$one
    done
    [ "$noted" != taking ] || echo "$unknown"
}

# Whether a process has a device open, or the system has it mounted or mapped.
busy() {
    [ -n "$(find /proc/[0-9]*/fd -lname "$1" -print -quit 2>/dev/null)" ] ||
        grep -qs "^$1 " /proc/mounts ||
        [ -n "$(ls "/sys/block/${1#/dev/}/holders" 2>/dev/null)" ]
}

# Free a device. One that is in use is left as it is: freeing it would only mark it, to
# vanish behind the back of its user.
release() {
    tries=100
    while busy "$1"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || fail "loop device $1 of volume $VOL_NAME is in use"
        sleep 0.02
    done
    losetup --detach "$1"
    tries=100
    while serves "$1"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || fail "loop device $1 of volume $VOL_NAME is in use"
        sleep 0.02
    done
}

# Free this node's device, and any that an interrupted run left.
unmap() {
    while one=$(device) && [ -n "$one" ]; do
        release "$one"
    done
    ! serves "$(noted)" || fail "loop device $(noted) of volume $VOL_NAME is in use"
    rm -f -- "$record"
}
