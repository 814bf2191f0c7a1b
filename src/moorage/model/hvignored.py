# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's parameters of kvm that have no effect here: who sets one is told.

A value that asks for nothing is accepted, so that requests and settings of Ganeti's
still work. Any other is refused where it is set. One that an earlier version kept is
warned of at each start.
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
    default
        The value that those are shown who look, where nobody set one.
    """

    effect: str
    plain: frozenset[str] = frozenset()
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


def _none(effect: str, *plain: str, default: bool | int | str = "") -> Ignored:
    return Ignored(effect, frozenset(plain), default)


IGNORED: dict[str, Ignored] = {
    "kvm_path": _none(
        "the qemu-system-x86_64 in the agent's PATH is run",
        *("/usr/bin/kvm", "/usr/bin/qemu-system-x86_64"),
        default="/usr/bin/kvm",
    ),
    "migration_caps": _none("migrations set their own capabilities"),
    "migration_mode": _none("guests migrate live", "live", default="live"),
    "soundhw": _none("there is no sound card"),
    "spice_bind": _none(_SPICE),
    "spice_image_compression": _none(_SPICE),
    "spice_ip_version": _none(_SPICE, "0", default=0),
    "spice_jpeg_wan_compression": _none(_SPICE),
    "spice_password_file": _none(_SPICE),
    "spice_playback_compression": _none(_SPICE, "true", *_OFF, default=True),
    "spice_streaming_video": _none(_SPICE),
    "spice_tls_ciphers": _none(
        _SPICE, "high:-des:-3des:-export:-dh", default="HIGH:-DES:-3DES:-EXPORT:-DH"
    ),
    "spice_use_tls": _none(_SPICE, *_OFF, default=False),
    "spice_use_vdagent": _none(_SPICE, "true", *_OFF, default=True),
    "spice_zlib_glz_wan_compression": _none(_SPICE),
    "use_chroot": _none(
        "QEMU is not in a chroot: it may open no file, and gets descriptors",
        *_OFF,
        default=False,
    ),
    "vif_type": _none("it is a parameter of Xen's"),
}
"""Every parameter of Ganeti's kvm that `Parameters` does not have."""


def check_ignored(given: Mapping[str, Any]) -> None:
    """Raise `BadInput` for a value that asks for something."""
    for name, value in given.items():
        one = IGNORED.get(name)
        if one and one.asks(value):
            plain = ", ".join(sorted(one.plain)) or "empty"
            raise BadInput(
                f"hypervisor parameter {name}={value} cannot be honoured: {one.effect}",
                hint=f"leave it out, or {plain}",
                parameter=name,
            )


def unheeded(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each value, kept by an earlier version, without effect."""
    for name, value in sorted(given.items()):
        one = IGNORED.get(name)
        if one and one.asks(value):
            yield f"hypervisor parameter {name}={value} has no effect: {one.effect}"
