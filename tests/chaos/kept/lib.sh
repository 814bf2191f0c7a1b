# SPDX-License-Identifier: BSD-2-Clause
# A provider that knows volumes by their names, and uses again what is there:
#   $TRUTH/kept/NAME             a volume: what is written in it is somebody's data
#   $TRUTH/log                   one line when a script begins and one when it ends
# Like those that adopt volumes by their names, it makes none with reuse_data=True, and
# takes none that is there without it.

set -eu
. ./settings.sh

volume=$TRUTH/kept/$VOL_CNAME
verb=${0##*/}

log() {
    echo "$(date +%s.%N) $VOL_NODE $verb kept/$VOL_CNAME ${VOL_EPOCH:-} $1" >>"$TRUTH/log"
}

# Up to $SLOW ms: killed and late processes are to be met in the middle.
pause() {
    sleep "$(shuf -i "0-$SLOW" -n 1)e-3"
}

refuse() {
    log "refused: $1"
    echo "$1" >&2
    exit 1
}

log begin
pause
