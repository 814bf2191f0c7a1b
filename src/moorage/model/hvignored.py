# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's parameters of kvm that have no effect here, and what becomes of them.

A value that asks for nothing is accepted, so that requests and settings of Ganeti's
still work. Any other is refused where who set it would rely on it (a guest that is not
confined, a console without its password), and is warned of where it is a matter of
taste.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moorage.errors import BadInput
from moorage.units import is_whole


class Ignored(NamedTuple):
    """A parameter without effect.

    Attributes
    ----------
    effect
        What is the case whatever its value is.
    plain
        Values that ask for no more than that, in lower case, besides the empty one.
    refused
        Whether another value is refused; if not, it is warned of.
    default
        The value that those are shown who look, where nobody set one.
    """

    effect: str
    plain: frozenset[str] = frozenset()
    refused: bool = False
    default: bool | int | str = ""

    def asks(self, value: object) -> bool:
        """Whether a value asks for something."""
        word = str("" if value is None else value).strip().lower()
        return word not in {"", "default"} | self.plain

    def typed(self, value: object) -> object:
        """Return a value as one of the default's type; as it is where it is none."""
        word = str(value).strip().lower()
        if isinstance(self.default, bool):
            return word not in _OFF if word in _OFF | _ON else value
        if isinstance(self.default, int):
            return int(word) if is_whole(word) else value
        return value


_OFF = frozenset({"false", "no", "off", "0"})
_ON = frozenset({"true", "yes", "on", "1"})
_SPICE = "there is no SPICE: screens are VNC (vga, vnc_bind_address)"


def _refuses(effect: str, *plain: str, default: bool | int | str = "") -> Ignored:
    return Ignored(effect, frozenset(plain), refused=True, default=default)


def _warns(effect: str, *plain: str, default: bool | int | str = "") -> Ignored:
    return Ignored(effect, frozenset(plain), default=default)


IGNORED: dict[str, Ignored] = {
    "disk_aio": _warns("QEMU's threads read and write", "threads", default="threads"),
    "disk_discard": _warns(
        "what a guest discards is given back", "unmap", "on", default="unmap"
    ),
    "disk_type": _refuses(
        "disks are paravirtual (virtio)", "paravirtual", default="paravirtual"
    ),
    "kvm_path": _warns(
        "the QEMU in the agent's PATH is run", "/usr/bin/kvm", default="/usr/bin/kvm"
    ),
    "mem_path": _warns("guests have no huge pages"),
    "migration_caps": _warns("migrations set their own capabilities"),
    "migration_mode": _refuses("guests migrate live", "live", default="live"),
    "scsi_controller_type": _warns("there is no SCSI controller", "lsi", default="lsi"),
    "soundhw": _warns("there is no sound card"),
    "spice_bind": _warns(_SPICE),
    "spice_image_compression": _warns(_SPICE),
    "spice_ip_version": _warns(_SPICE, "0", default=0),
    "spice_jpeg_wan_compression": _warns(_SPICE),
    "spice_password_file": _refuses(_SPICE),
    "spice_playback_compression": _warns(_SPICE, "true", *_OFF, default=True),
    "spice_streaming_video": _warns(_SPICE),
    "spice_tls_ciphers": _refuses(
        _SPICE, "high:-des:-3des:-export:-dh", default="HIGH:-DES:-3DES:-EXPORT:-DH"
    ),
    "spice_use_tls": _refuses(_SPICE, *_OFF, default=False),
    "spice_use_vdagent": _warns(_SPICE, "true", *_OFF, default=True),
    "spice_zlib_glz_wan_compression": _warns(_SPICE),
    "usb_devices": _refuses("a guest has no USB"),
    "use_chroot": _refuses(
        "QEMU is not in a chroot: it may open no file, and gets descriptors",
        *_OFF,
        default=False,
    ),
    "vif_type": _warns("it is a parameter of Xen's"),
}
"""Every parameter of Ganeti's kvm that `Parameters` does not have."""


def check_ignored(given: Mapping[str, Any]) -> None:
    """Raise `BadInput` for a value that somebody would rely on in vain."""
    for name, value in given.items():
        one = IGNORED.get(name)
        if one and one.refused and one.asks(value):
            plain = ", ".join(sorted(one.plain)) or "empty"
            raise BadInput(
                f"hypervisor parameter {name}={value} cannot be honoured: {one.effect}",
                hint=f"leave it out, or {plain}",
                parameter=name,
            )


def unheeded(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each value that will have no effect."""
    for name, value in sorted(given.items()):
        one = IGNORED.get(name)
        if one and one.asks(value):
            yield f"hypervisor parameter {name}={value} has no effect: {one.effect}"
