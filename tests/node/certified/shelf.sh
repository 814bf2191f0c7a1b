#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every script of a good provider: which one it is, its name says.

set -eu
dir=${EXTP_DIR:?}
action=${0##*/}
fail() { echo "shelf: $*" >&2; exit 1; }
strange() { env | sed -n 's/^EXTP_\([A-Z_]*\)=.*/\1/p' | grep -vxE 'DIR|ACCESS|PROVIDER'; }
case $action in
verify) ! strange >&2; exit ;;
capacity) echo 4096 2048; exit ;;
list) for file in "$dir"/v/*; do
        [ -e "$file" ] || continue
        echo "${file##*/} $(($(stat -c %s "$file") >> 20))"
    done; exit ;;
esac
name=$VOL_NAME
image=$dir/v/$name
lease=$dir/l/$name
draft=$dir/t/$name
there() { [ -e "$image" ] && [ ! -L "$image" ] || fail "there is no volume $name"; }
mine() { [ ! -e "$lease" ] || awk -v me="$VOL_NODE" "$1" "$lease"; }
case $action in
create)
    wanted=$((VOL_SIZE << 20))
    if [ -e "$image" ]; then
        [ "$(stat -c %s "$image")" = $wanted ] || fail "$image is another volume"
        exit 0
    fi
    truncate -s $wanted "$draft"
    mv "$draft" "$image" ;;
attach)
    there
    echo
    echo "kvm:file:$image" ;;
detach) : ;;
remove) rm -f "$image" "$lease" "$draft" "$dir/n/$name" ;;
grow)
    there
    truncate -s ">$((VOL_NEW_SIZE << 20))" "$image" ;;
setinfo)
    there
    echo "$VOL_METADATA" >"$dir/n/$name" ;;
snapshot)
    there
    copy=$dir/v/$VOL_SNAPSHOT_NAME
    [ ! -e "$copy" ] || exit 0
    cp --sparse=always "$image" "$draft.copy"
    truncate -s ">$((VOL_SNAPSHOT_SIZE << 20))" "$draft.copy"
    mv "$draft.copy" "$copy" ;;
open)
    there
    exec 9<"$image"; flock 9
    [ ! -e "$lease" ] || while read -r holder alone epoch; do
        [ "$epoch" -le "$VOL_EPOCH" ] || fail "epoch $VOL_EPOCH is over"
        [ "$holder" = "$VOL_NODE" ] || [ "$epoch" -lt "$VOL_EPOCH" ] ||
            [ $alone$VOL_OPEN_EXCLUSIVE = FalseFalse ] || fail "open on $holder"
    done <"$lease"
    others=$(mine '$1 != me && $3 == ENVIRON["VOL_EPOCH"]')
    echo "$others${others:+
}$VOL_NODE $VOL_OPEN_EXCLUSIVE $VOL_EPOCH" >"$lease" ;;
close)
    left=$(mine '$1 != me')
    [ -z "$left" ] || echo "$left" >"$lease"
    [ -n "$left" ] || rm -f "$lease" ;;
esac
