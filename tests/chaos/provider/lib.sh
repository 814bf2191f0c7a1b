# SPDX-License-Identifier: BSD-2-Clause
# A provider whose scripts take their time, and whose state can be read from outside:
#   $TRUTH/volumes/NAME         its size in MiB
#   $TRUTH/attached/NODE:NAME   the epoch of the attachment
#   $TRUTH/log                  one line when a script begins and one when it ends
# It has no open and no close: nothing but the cluster stands between two writers.

set -eu
. ./settings.sh

volume=$TRUTH/volumes/$VOL_NAME
attached=$TRUTH/attached/$VOL_NODE:$VOL_NAME
verb=${0##*/}

log() {
    echo "$(date +%s.%N) $VOL_NODE $verb $VOL_NAME ${VOL_EPOCH:-} $1" >>"$TRUTH/log"
}

# Up to $SLOW ms: killed and late processes are to be met in the middle.
pause() {
    sleep "$(shuf -i "0-$SLOW" -n 1)e-3"
}

store() {
    echo "$2" >"$1.$$.new"
    mv -T -- "$1.$$.new" "$1"
}

need_volume() {
    [ -e "$volume" ] || {
        echo "there is no volume $VOL_NAME" >&2
        exit 1
    }
}

log begin
pause
