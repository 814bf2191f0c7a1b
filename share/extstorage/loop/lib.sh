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
record=$run/$node/$VOL_NAME
mib=1048576

# One script at a time on this machine.
lock() {
    mkdir -p -- "$run/$node"
    exec 9>"$run/lock"
    flock --wait 60 9 || fail "another script holds $run/lock"
}

image_size() {
    stat --format %s -- "$image"
}

# Write a record, whole or not at all.
note() {
    echo "$1" >"$record.new"
    mv -T -- "$record.new" "$record"
}

noted() {
    cat -- "$record" 2>/dev/null || :
}

# Print the loop devices that serve the whole image, for writing, on this machine. One
# that vanishes as soon as its last user closes it does not count.
devices() {
    [ -e "$image" ] || return 0
    losetup --noheadings --raw --output NAME,AUTOCLEAR,OFFSET,SIZELIMIT,RO \
        --associated "$image" | awk '$2 + $3 + $4 + $5 == 0 { print $1 }'
}

# Whether a device still serves the image, in whatever way.
serves() {
    [ -n "$1" ] && [ -e "$image" ] &&
        losetup --noheadings --raw --output NAME --associated "$image" |
        grep -qFx -- "$1"
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
        grep -qsFx "$one" "$run"/*/"$VOL_NAME" || unknown=$one
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
