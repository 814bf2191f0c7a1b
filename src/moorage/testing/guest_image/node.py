# SPDX-License-Identifier: BSD-2-Clause
"""A guest that is a node: a kernel of its own, with storage that containers have not.

Its files are the host's, read only, below a layer of its own in memory. So the programs
of the host, and the code under test, are there without an image being made.
"""

from .system import CHANNEL, System

_MODULES = (
    *("virtio_pci", "virtio_blk", "virtio_console", "virtio_net", "virtio_rng"),
    *("virtiofs", "overlay", "crc32c_generic", "ext4", "loop", "tun", "bridge"),
    *("dm_mod", "dm_snapshot", "dm_mirror", "dm_thin_pool", "drbd", "rbd", "nbd"),
)

_INIT = r"""#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev /sbin /usr/bin /usr/sbin /host /own /node
$b --install -s
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
while read -r m; do insmod "/m/$m.ko" 2>/dev/null; done < /m/order
mount -t virtiofs -o ro host /host || exec sh
mount -t tmpfs -o size=70% tmpfs /own
mkdir -p /own/upper /own/work
mount -t overlay -o lowerdir=/host,upperdir=/own/upper,workdir=/own/work overlay /node
for d in tmp run dev/shm; do mkdir -p /node/$d; done
mount -t tmpfs tmpfs /node/tmp
mount -t tmpfs tmpfs /node/run
mkdir -p /node/run/lock /node/run/lvm
for d in proc sys dev; do mount --move /$d /node/$d; done
mkdir -p /node/dev/pts /node/dev/shm
mount -t devpts devpts /node/dev/pts
mount -t tmpfs tmpfs /node/dev/shm
cp /bin/channel /node/run/channel
cp /bin/node /node/run/node
exec switch_root /node /bin/sh /run/node
"""
"""First process: modules, then the host's files below a layer of the node's own."""

_START = r"""#!/bin/sh
# The node's own settings, over the host's files; then the channel, for ever.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LC_ALL=C
for word in $(cat /proc/cmdline); do
  case $word in
    moorage.name=*) hostname "${word#*=}" ;;
    moorage.address=*) address=${word#*=} ;;
  esac
done
ip link set lo up
ip link set eth0 up
ip addr add "$address" dev eth0
rm -rf /etc/lvm /var/lib/drbd /var/lib/moorage-node
mkdir -p /etc/lvm /var/lib/drbd /var/lib/moorage-node
for d in /sys/block/vd*; do
  [ "$(cat $d/serial)" = state ] && mount "/dev/${d##*/}" /var/lib/moorage-node
done
cat > /etc/lvm/lvm.conf <<CONF
activation { udev_sync=0 udev_rules=0 verify_udev_operations=0 }
devices { obtain_device_list_from_udev=0 use_devicesfile=0 filter=[ "r|/dev/drbd.*|" ] }
backup { backup=0 archive=0 }
CONF
[ -d /sys/module/drbd ] && echo /bin/true > /sys/module/drbd/parameters/usermode_helper
while :; do /bin/sh /run/channel; sleep 1; done </dev/null >/dev/null 2>&1
"""
"""What a guest that is a node runs: no udev and no systemd, a shell and its channel."""

NODE = System(_MODULES, _INIT, {"channel": CHANNEL, "node": _START})
"""The host's own system, as a node of a cluster."""
