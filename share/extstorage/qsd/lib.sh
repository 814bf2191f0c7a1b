# SPDX-License-Identifier: BSD-2-Clause
# What all scripts of this provider share. Sourced, with the provider's directory as
# working directory: that is where the cluster starts every script.
#
# Words: an *image* is the file that holds a volume's data. The *lease* beside it says
# which nodes may write; one line a node: its name, "exclusive" or "shared", the epoch.
# A *daemon* serves one image at one size through one socket on one node.

set -eu
. ./etc/settings.sh

fail() {
    echo "qsd: $*" >&2
    exit 1
}

: "${VOL_NAME:?no volume is named}"
case $VOL_NAME in
*/* | .*) fail "'$VOL_NAME' is not the name of a volume" ;;
esac

dir=${EXTP_DIR:-$IMAGE_DIR}
direct=${EXTP_DIRECT:-$DIRECT_IO}
node=${VOL_NODE:-$(hostname)}
epoch=${VOL_EPOCH:-} # empty: a cluster that does not count attachments
image=$dir/$VOL_NAME
lease=$image.lease
run=${EXTP_RUN:-$RUN_DIR}/$node
# The path of a Unix socket holds 107 bytes at most, so a volume is known by a digest.
key=$(printf %s "$VOL_NAME" | sha256sum | cut -c 1-12)
mib=1048576

# One script at a time for one image, on all nodes that share it. Without an image there
# is nothing to protect.
lock() {
    [ -e "$image" ] || return 0
    exec 9<>"$image"
    flock --wait 60 9 || fail "image $image is locked by another script"
}

image_size() {
    stat --format %s -- "$image"
}

# -- the lease ---------------------------------------------------------------------

# Refuse a step of an attachment that is over: this node, or "any" node, carries on
# with a higher epoch.
not_stale() {
    [ -n "$epoch" ] && [ -e "$lease" ] || return 0
    while read -r holder mode held; do
        [ "$1" = any ] || [ "$holder" = "$node" ] || continue
        [ "$held" -le "$epoch" ] || fail "volume $VOL_NAME is $mode on node $holder" \
            "with epoch $held: a step with epoch $epoch comes too late"
    done <"$lease"
}

held_elsewhere() {
    [ -e "$lease" ] && awk -v me="$node" \
        '$1 != me && $2 == "exclusive" { found = 1 } END { exit !found }' "$lease"
}

# Print the lines of the nodes that share the volume with this one. A holder with a
# lower epoch is fenced: whoever raised the epoch knows that it is gone.
fellows() {
    [ -e "$lease" ] || return 0
    while read -r holder mode held; do
        [ "$holder" != "$node" ] || continue
        if [ -z "$epoch" ]; then
            [ "$1" = exclusive ] || [ "$mode" = exclusive ] ||
                echo "$holder $mode $held"
        elif [ "$held" -eq "$epoch" ]; then
            [ "$1" = shared ] && [ "$mode" = shared ] ||
                fail "volume $VOL_NAME is open ($mode) on node $holder with" \
                    "epoch $held: node $node cannot open it ($1) with epoch $epoch"
            echo "$holder $mode $held"
        fi
    done <"$lease"
}

take_lease() {
    not_stale any
    kept=$(fellows "$1")
    {
        [ -z "$kept" ] || echo "$kept"
        echo "$node $1 ${epoch:-0}"
    } >"$lease.new"
    keep_lease
}

# Put the new lease in the old one's place. It must outlive a power cut whole: a lost
# lease has no epoch, and would let a late step pass.
keep_lease() {
    sync -- "$lease.new"
    mv -T -- "$lease.new" "$lease"
    sync -- "$dir"
}

drop_lease() {
    [ -e "$lease" ] || return 0
    awk -v me="$node" '$1 != me' "$lease" >"$lease.new"
    keep_lease
    [ -s "$lease" ] || rm -f -- "$lease"
}

# -- the daemons -------------------------------------------------------------------

# Print the socket that serves the image at its present size. A daemon tells its clients
# the size that it saw when it started, so a grown image gets another one.
socket() {
    echo "$run/$key.$(($(image_size) / mib)).sock"
}

# Whether the daemon of a socket runs. Its number may be another program's by now.
serves() {
    pid=$(cat "${1%.sock}.pid" 2>/dev/null) || return 1
    tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null |
        grep -qF "addr.path=$(escaped "$1"),"
}

# Print the URI of the volume behind a socket. The short form ends a path at a colon; the
# long one holds any path, with some characters as numbers.
uri() {
    case $1 in
    *[:?\ ]*)
        path=$(printf %s "$1" |
            sed 's/%/%25/g; s/ /%20/g; s/&/%26/g; s/+/%2B/g; s/#/%23/g; s/;/%3B/g; s/?/%3F/g')
        echo "nbd+unix:///$VOL_NAME?socket=$path"
        ;;
    *) echo "nbd:unix:$1:exportname=$VOL_NAME" ;;
    esac
}

# QEMU's option syntax wants a comma doubled.
escaped() {
    printf %s "$1" | sed 's/,/,,/g'
}

# Start the daemon of the image's present size, unless it runs.
#
# locking=off: in a migration the daemons of two nodes hold one image open. Who may
# write is the lease's business.
serve() {
    path=$(socket)
    [ "${#path}" -le 107 ] || fail "socket path $path is longer than 107 bytes:" \
        "choose a shorter parameter 'run'"
    serves "$path" && return
    mkdir -p -- "$run"
    rm -f -- "$path"
    qemu-storage-daemon --daemonize --pidfile "${path%.sock}.pid" \
        --blockdev "driver=file,node-name=image,locking=off,discard=unmap,cache.direct=$direct,filename=$(escaped "$image")" \
        --blockdev driver=raw,node-name=disk,file=image \
        --nbd-server "addr.type=unix,addr.path=$(escaped "$path"),max-connections=0" \
        --export "type=nbd,id=export,node-name=disk,name=$(escaped "$VOL_NAME"),writable=on" \
        9>&- # or the daemon would hold our lock for ever
}

# End the daemon of a socket; what a guest was told to be on disk is there before it ends.
# (It counts as gone as soon as it has no command line, reaped by init or not.)
end_daemon() {
    serves "$1" || return 0
    kill "$pid" 2>/dev/null || :
    tries=500
    while serves "$1" && [ "$tries" -gt 0 ]; do
        tries=$((tries - 1))
        sleep 0.02
    done
    ! serves "$1" || kill -9 "$pid" 2>/dev/null || :
}

stop_serving() {
    for file in "$run/$key".*.pid; do
        [ -e "$file" ] || continue
        path=${file%.pid}.sock
        end_daemon "$path"
        rm -f -- "$path" "$file"
    done
}
