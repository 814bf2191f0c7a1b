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

epoch=${VOL_EPOCH:-} # empty: a cluster that does not count attachments
lease=$at/$VOL_NAME.lease
[ ! -L "$lease" ] || fail "$image.lease is a symbolic link"
# The path of a Unix socket holds 107 bytes at most, so a volume is known by a digest.
key=$(printf %s "$VOL_NAME" | sha256sum | cut -c 1-12)

# One script at a time for one image, on all nodes that share it. Without an image there
# is nothing to protect.
lock() {
    [ -e "$opened" ] || return 0
    exec 9<>"$opened"
    flock --wait 60 9 || fail "image $image is locked by another script"
}

# Refuse a step of an attachment that is over: this node, or "any" node, carries on
# with a higher epoch.
not_stale() {
    [ -n "$epoch" ] || return 0
    while read -r holder mode held; do
        [ -n "$holder" ] || continue
        [ "$1" = any ] || [ "$holder" = "$node" ] || continue
        [ "$held" -le "$epoch" ] || fail "volume $VOL_NAME is $mode on node $holder" \
            "with epoch $held: a step with epoch $epoch comes too late"
    done <<END
$(see "$lease")
END
}

held_elsewhere() {
    see "$lease" | awk -v me="$node" \
        '$1 != me && $2 == "exclusive" { found = 1 } END { exit !found }'
}

# Print the lines of the nodes that share the volume with this one. A holder with a
# lower epoch is fenced: whoever raised the epoch knows that it is gone.
fellows() {
    while read -r holder mode held; do
        [ -n "$holder" ] && [ "$holder" != "$node" ] || continue
        if [ -z "$epoch" ]; then
            [ "$1" = exclusive ] || [ "$mode" = exclusive ] ||
                echo "$holder $mode $held"
        elif [ "$held" -eq "$epoch" ]; then
            [ "$1" = shared ] && [ "$mode" = shared ] ||
                fail "volume $VOL_NAME is open ($mode) on node $holder with" \
                    "epoch $held: node $node cannot open it ($1) with epoch $epoch"
            echo "$holder $mode $held"
        fi
    done <<END
$(see "$lease")
END
}

take_lease() {
    not_stale any
    kept=$(fellows "$1")
    {
        [ -z "$kept" ] || echo "$kept"
        echo "$node $1 ${epoch:-0}"
    } | keep_lease
}

# It must outlive a power cut whole: a lost lease has no epoch, and would let a late step
# pass.
keep_lease() {
    put "$lease"
    sync -- "$at/."
}

drop_lease() {
    [ -e "$lease" ] || return 0
    see "$lease" | awk -v me="$node" '$1 != me' | keep_lease
    [ -s "$lease" ] || rm -f -- "$lease"
}

# Print the socket that serves the image at its present size. A daemon tells its clients
# the size that it saw when it started, so a grown image gets another one.
socket() {
    echo "$run/$node/$key.$(($(image_size) / mib)).sock"
}

# Whether the daemon of a socket runs. Its number may be another program's by now. What
# its arguments say was said otherwise once: daemons of that time still run.
serves() {
    pid=$(see "$(here "${1%.sock}.pid")")
    [ -n "$pid" ] || return 1
    tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null |
        grep -qF -e "description=$(escaped "$1")," -e "addr.path=$(escaped "$1"),"
}

# Print where this node's part of `run` has a file, by the open directory.
here() {
    echo "$at_run/${1##*/}"
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
# It is a user of its own that may open nothing, and gets the image as descriptor 8, and
# as 4 the socket that ./confined makes. locking=off: in a migration the daemons of two
# nodes hold one image open. Who may write is the lease's business.
serve() {
    path=$(socket)
    [ "${#path}" -le 107 ] || fail "socket path $path is longer than 107 bytes:" \
        "choose a shorter parameter 'run'"
    serves "$path" && return
    ./confined "${DAEMON_UIDS:-2100000000-2100009999}" \
        "$(here "$path")" "$(here "${path%.sock}.pid")" \
        qemu-storage-daemon \
        --blockdev "driver=file,node-name=image,locking=off,discard=unmap,auto-read-only=off,cache.direct=$direct,filename=$opened" \
        --blockdev driver=raw,node-name=disk,file=image \
        --nbd-server addr.type=fd,addr.str=4,max-connections=0 \
        --export "type=nbd,id=export,node-name=disk,description=$(escaped "$path"),name=$(escaped "$VOL_NAME"),writable=on"
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
    for file in "$at_run/$key".*.pid; do
        [ -e "$file" ] || continue
        name=${file##*/}
        end_daemon "$run/$node/${name%.pid}.sock"
        rm -f -- "${file%.pid}.sock" "$file"
    done
}
