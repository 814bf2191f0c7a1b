# SPDX-License-Identifier: BSD-2-Clause
"""The guest's own programs: what runs inside, as shell scripts for busybox."""

INIT = r"""#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev /tmp /mnt /boot /sbin /usr/bin /usr/sbin /var/run /var/log
$b mkdir -p /etc/acpi/PWRF
$b --install -s
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
while read -r m; do insmod "/m/$m.ko" 2>/dev/null; done < /m/order
printf '#!/bin/sh\nsync\npoweroff -f\n' > /etc/acpi/PWRF/00000080
chmod +x /etc/acpi/PWRF/00000080
acpid 2>/dev/null
ip link set lo up
/bin/find-system
while :; do /bin/channel; sleep 1; done </dev/null >/dev/null 2>&1 &
while :; do
  setsid sh -c 'exec sh -i </dev/ttyS0 >/dev/ttyS0 2>&1'
  sleep 1
done
"""
"""First process: modules, the power button, then the channel and the console."""

_FIND_SYSTEM = r"""#!/bin/sh
# Says in /etc/moorage-system where the system came from: "kernel" when the hypervisor
# brought it, "disk SERIAL NOTE" when it was booted from a disk (mounted on /boot).
echo kernel > /etc/moorage-system
grep -q moorage.system=disk /proc/cmdline || exit 0
for d in /sys/block/vd*; do
  v=/dev/${d##*/}
  mount -t vfat "$v" /boot 2>/dev/null || continue
  [ -e /boot/moorage.txt ] && break
  umount /boot
done
echo "disk $(cat "$d/serial") $(cat /boot/moorage.txt)" > /etc/moorage-system
"""

CHANNEL = r"""#!/bin/busybox sh
# One request a line: "ID COMMAND", one answer a line: "ID STATUS OUTPUT,ERRORS"; what
# stands in capitals after the status, and the command, is base64. A client that comes
# back knows old answers by their ID.
p=${1:-$(ls /dev/vport* 2>/dev/null | head -n 1)}
[ -n "$p" ] || { sleep 5; exit 1; }
exec 3<>"$p"
/bin/busybox mkfifo /tmp/nobody 2>/dev/null
exec 4<>/tmp/nobody
cd /root 2>/dev/null || cd /
while :; do
  if read -r id command rest <&3; then
    [ -n "$command" ] || continue
    echo "$command" | base64 -d > /tmp/command 2>/dev/null || continue
    sh /tmp/command </dev/null >/tmp/output 2>/tmp/errors 3<&- 4<&-
    code=$?
    said="$(base64 -w 0 < /tmp/output),$(base64 -w 0 < /tmp/errors)"
    printf '%s %s %s\n' "$id" "$code" "$said" >&3
  else
    # Nobody listens. A program that sleeps costs a fork; not every shell can do without.
    read -r -t 0.1 nothing <&4 || [ $? != 2 ] || sleep 0.05
  fi
done
"""

PROGRAMS = {"channel": CHANNEL, "find-system": _FIND_SYSTEM}
"""More scripts, by name."""

PROFILE = "export PS1='guest# ' HOME=/ PATH=/bin:/sbin:/usr/bin:/usr/sbin\n"

SYSLINUX = """DEFAULT guest
PROMPT 0
TIMEOUT 0
LABEL guest
  KERNEL /vmlinuz
  INITRD /initrd.gz
  APPEND {arguments} moorage.system=disk
"""

ARGUMENTS = " ".join(
    (
        *("console=ttyS0", "quiet", "loglevel=3", "panic=-1"),
        *("tsc=reliable", "no_timer_check", "mitigations=off", "cryptomgr.notests"),
    )
)
"""Kernel arguments that make it boot fast where there is no KVM."""
