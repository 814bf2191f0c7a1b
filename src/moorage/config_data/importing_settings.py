# SPDX-License-Identifier: BSD-2-Clause
"""Settings of a file of Ganeti's that can be had here; the others are left aside.

Each is looked at by itself, with the check of the request that would set it. One that
cannot be had is as in a new cluster, and goes out again as it came.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from moorage.errors import BadInput, MoorageError
from moorage.hypervisors import HYPERVISORS, KVM
from moorage.model import DISKLESS, Cluster, hvparams, uidpool
from moorage.model.master_address import checked
from moorage.model.nicparams import checked_prefix
from moorage.ops import ndparams
from moorage.ops.cluster import defaults
from moorage.ops.planning import allocators
from moorage.ops.volumes.directories import SETTINGS as DIRECTORIES
from moorage.storage import TEMPLATES
from moorage.storage.lvm import check_name
from moorage.storage.validation import check_image_directory

from .document import Part

_NUMBERS = ("candidate_pool_size", "max_running_jobs")
_WORDS: dict[str, Callable[[str], object]] = {
    "mac_prefix": checked_prefix,
    "volume_group_name": lambda name: name and check_name("volume group", name),
    **{name: partial(check_image_directory, name) for name in DIRECTORIES},
}
"""Settings of one word, with what refuses one; a value of another type is told of by
whoever reads the object."""


_ADDRESS = ("master_ip", "master_netdev", "master_netmask", "master_ip_active")


class Settled(NamedTuple):
    """What an object is made of instead of its settings in the file.

    Attributes
    ----------
    fields
        The values that count here.
    aside
        What is left aside, in sentences.
    """

    fields: Part
    aside: list[str]


def of_cluster(part: Part, here: Cluster) -> Settled:
    """Return the settings of a cluster that have an effect in the one that is here.

    Raises
    ------
    BadInput
        If something is no list that must be one.
    """
    nodes, told = of_nodes(part)
    aside = [*told, *_reserved(part)]
    hypervisors = _listed(part, "enabled_hypervisors")
    enabled = [one for one in hypervisors if one in HYPERVISORS]
    others = sorted({*hypervisors} - {*enabled})
    aside += [f"nothing here runs guests of {name}" for name in others]
    params = {
        name: _honoured(f"-H {name}", given, partial(hvparams.check, KVM), aside)
        for name, given in (part.get("hvparams") or {}).items()
        if name in HYPERVISORS
    }
    presets = {
        name: _honoured(f"-D {name}", given, TEMPLATES[name].defaults, aside)
        for name, given in (part.get("diskparams") or {}).items()
        if name in TEMPLATES
    }
    found = {
        **nodes,
        "enabled_hypervisors": enabled or here.enabled_hypervisors,
        **_templates(part, here, aside),
        "hvparams": params,
        "diskparams": presets,
    }
    plain = _plain(part, here, aside)
    return Settled({**found, **plain, **_address(part, here, aside)}, aside)


def _address(part: Part, here: Cluster, aside: list[str]) -> Part:
    """Return the address that moves with the master: the file's, but it is not up yet.

    Ganeti's master may have it.
    """
    own = {name: getattr(here, name) for name in _ADDRESS}
    if part.get("use_external_mip_script"):
        aside.append("the master's address is set by no script here: it goes out again")
    ip, device = part.get("master_ip") or "", part.get("master_netdev") or ""
    if not ip or not device:
        return own
    try:
        found = checked(ip, device, part.get("master_netmask") or 0)
    except BadInput as error:
        aside.append(f"{error.message}: the word goes out again")
        return own
    aside.append(
        f"the master's address {found.ip} is not up yet: gnt-cluster "
        "activate-master-ip, when Ganeti's master has it no more"
    )
    told = (found.ip, found.device, found.bits, False)
    return dict(zip(_ADDRESS, told, strict=True))


def _templates(part: Part, here: Cluster, aside: list[str]) -> Part:
    """Return the disk templates that may be used: without a list of them, all."""
    if part.get("enabled_disk_templates") is None:
        return {}
    given = _listed(part, "enabled_disk_templates")
    known = [one for one in given if one in TEMPLATES or one == DISKLESS]
    others = sorted({*given} - {*known})
    aside += [f"there is no disk template '{name}' here" for name in others]
    return {"enabled_disk_templates": known or here.enabled_disk_templates}


def of_nodes(part: Part) -> Settled:
    """Return the node parameters of a cluster, a group or a node that can be had."""
    found, aside = dict(part.get("ndparams") or {}), []
    for name, value in sorted(found.items()):
        if value is None or value == ndparams.DEFAULTS.get(name):
            continue
        try:
            ndparams.checked({name: value})
        except MoorageError as error:
            way = f" ({error.hint})" if error.hint else ""
            aside.append(f"{error.message}{way}: {name}={value} goes out again")
            del found[name]
    return Settled({"ndparams": found}, aside)


def _plain(part: Part, here: Cluster, aside: list[str]) -> Part:
    """Return what is ours where the file's word is none that a request could set.

    An empty pool of users is Ganeti's word for none; whoever reads exports needs one.
    """
    found: Part = {} if part.get("uid_pool") else {"uid_pool": here.uid_pool}
    checks: dict[str, Callable[[Any], object]] = {
        **{name: partial(defaults.check_number, name) for name in _NUMBERS},
        **{name: _WORDS[name] for name in _WORDS if isinstance(part.get(name), str)},
        "uid_pool": uidpool.checked,
        "default_iallocator": allocators.check,
        "default_iallocator_params": allocators.check_words,
    }
    for name, check in checks.items():
        value = part.get(name)
        if value is None:
            continue
        try:
            check(value)
        except MoorageError as error:
            own = getattr(here, name)
            told = uidpool.shown(own) if name == "uid_pool" else own or "none"
            aside.append(f"{error.message}: it is {told}, and the word goes out again")
            found[name] = own
    return found


def _listed(part: Part, name: str) -> Sequence[str]:
    """Return the words of a list; raise `BadInput` if it is none."""
    given = part.get(name) or []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise BadInput(f"'{name}' is a list of words, not {given!r:.80}")
    return given


def _reserved(part: Part) -> Iterator[str]:
    if named := _listed(part, "reserved_lvs"):
        told = ", ".join(named)
        yield (
            "reserved_lvs has no effect here, for no volume of others is touched: "
            f"{told} goes out again"
        )


def _honoured(
    option: str, given: Part, check: Callable[[Part], object], aside: list[str]
) -> Part:
    """Return the presets that can be had here, each for itself."""
    found: Part = {}
    for key, value in given.items():
        with suppress(MoorageError):
            check({key: value})
            found[key] = value
    without = [f"{key}={given[key]}" for key in given if key not in found]
    if without:
        told = f"{option} has no effect here, and goes out again: "
        aside.append(told + ", ".join(without))
    return found
