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

# Print the loop devices that serve the image on this machine. One that vanishes as soon
# as its last user closes it does not count.
devices() {
    [ -e "$image" ] || return 0
    losetup --noheadings --raw --output NAME,AUTOCLEAR --associated "$image" |
        awk '$2 == 0 { print $1 }'
}

# Print this node's device. One that no record of any node names was left by a run that
# was interrupted before it could write the record: it is ours to use.
device() {
    noted=$(cat "$record" 2>/dev/null || :)
    unknown=
    for one in $(devices); do
        if [ "$one" = "$noted" ]; then
            echo "$one"
            return
        fi
        grep -qsFx "$one" "$run"/*/"$VOL_NAME" || unknown=$one
    done
    echo "$unknown"
}

release() {
    losetup --detach "$1"
    tries=100
    while losetup --noheadings --output BACK-FILE "$1" 2>/dev/null |
        grep -qF "/$VOL_NAME"; do
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
    rm -f -- "$record"
}
