#!/bin/bash
# Make the image of a small Debian 12 that knows nothing of where it will run: cloud-init
# gives it a name, keys and addresses at its first start. It is built as those of Debian's
# cloud team are used: a qcow2 with a GPT, whose last partition is the system.
# Usage: make-cloud-image.sh FILE
set -euo pipefail

SUITE=bookworm
SYSTEM=systemd-sysv,dbus,iproute2,openssh-server,cloud-init,linux-image-cloud-amd64
BOOT_MIB=32 SYSTEM_MIB=576

# The archive from which this machine has its own packages.
archive() {
    apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' "Codename: $SUITE" 'Component: main' | sed -n 1p
}

# What Debian's images have set besides; and nothing that works at times by itself.
settings() {
    local root=$1
    printf 'MODULES=list\nFSTYPE=ext4\nCOMPRESS=gzip\n' >"$root/etc/initramfs-tools/conf.d/small"
    printf 'virtio_pci\nvirtio_blk\next4\ncrc32c_generic\n' >>"$root/etc/initramfs-tools/modules"
    chroot "$root" update-initramfs -u >/dev/null
    chroot "$root" systemctl --quiet enable systemd-networkd
    chroot "$root" systemctl --quiet mask systemd-networkd-wait-online.service \
        apt-daily.timer apt-daily-upgrade.timer e2scrub_reap.service getty@tty1.service
    cat >"$root/etc/cloud/cloud.cfg.d/90_small.cfg" <<END
datasource_list: [NoCloud, None]
ssh_genkeytypes: [ed25519]
locale: false
END
    rm -rf "$root"/etc/ssh/ssh_host_* "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin
    : >"$root/etc/machine-id"
}

# A FAT with the kernel, and the loader that reads it.
boot_partition() {
    local root=$1 image=$2
    truncate -s "${BOOT_MIB}M" "$image"
    mformat -i "$image" -v BOOT ::
    mcopy -i "$image" "$root"/boot/vmlinuz-* ::/vmlinuz
    mcopy -i "$image" "$root"/boot/initrd.img-* ::/initrd
    mcopy -i "$image" - ::/syslinux.cfg <<END
DEFAULT linux
LABEL linux
  LINUX /vmlinuz
  INITRD /initrd
  APPEND root=/dev/vda2 console=ttyS0 quiet
END
    syslinux --install "$image"
}

whole() {
    local image=$1 boot=$2 system=$3 loader=/usr/lib/syslinux/mbr/gptmbr.bin
    truncate -s "$((1 + BOOT_MIB + SYSTEM_MIB + 1))M" "$image"
    sfdisk --quiet "$image" <<END
label: gpt
first-lba: 34
start=2048, size=${BOOT_MIB}MiB, type=EBD0A0A2-B9E5-4433-87C0-68B6B72699C7, attrs=LegacyBIOSBootable
size=${SYSTEM_MIB}MiB, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709
END
    dd if="$loader" of="$image" conv=notrunc status=none
    dd if="$boot" of="$image" bs=1M seek=1 conv=notrunc,sparse status=none
    dd if="$system" of="$image" bs=1M seek=$((1 + BOOT_MIB)) conv=notrunc,sparse status=none
}

main() {
    local target=$1 work
    mkdir -p "$(dirname "$target")"
    work=$(mktemp -d)
    trap "rm -rf '$work'" EXIT
    mmdebstrap --quiet --variant=minbase --include="$SYSTEM" \
        --dpkgopt=force-unsafe-io --aptopt='Acquire::Languages "none"' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/man/*' "$SUITE" "$work/root" "$(archive)"
    settings "$work/root"
    boot_partition "$work/root" "$work/boot"
    mke2fs -q -t ext4 -d "$work/root" "$work/system" "${SYSTEM_MIB}M"
    whole "$work/disk" "$work/boot" "$work/system"
    qemu-img convert -O qcow2 "$work/disk" "$target.new"
    mv "$target.new" "$target"
}

main "$@"
