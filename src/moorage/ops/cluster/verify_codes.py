# SPDX-License-Identifier: BSD-2-Clause
"""The checks of verify, with Ganeti's codes for what they find: monitors read them."""

from collections.abc import Callable, Iterable

from moorage.consistency import CODES, CONFIG
from moorage.errors import BadInput, NotFound
from moorage.model import Config

from . import (
    checks_address,
    checks_certificates,
    checks_copies,
    checks_devices,
    checks_disks,
    checks_guests,
    checks_leads,
    checks_mirrors,
    checks_networks,
    checks_nodes,
    checks_pools,
    checks_processors,
    checks_records,
    checks_ssconf,
    checks_storage,
    checks_store,
    checks_survival,
    checks_watcher,
)
from .observation import Finding, Seen, group_uuid

CHECKS: dict[Callable[[Seen], Iterable[Finding]], str] = {
    checks_records.presets: CONFIG,
    checks_records.consistent: CONFIG,
    checks_nodes.silent: "ENODERPC",
    checks_nodes.masters: "",
    checks_nodes.versions: "ENODEVERSION",
    checks_certificates.nodes: "ECLUSTERCLIENTCERT",
    checks_certificates.master: "ECLUSTERCERT",
    checks_copies.copies: "",
    checks_store.store: checks_store.CODE,
    checks_leads.changes: "ECLUSTERLEAD",
    checks_leads.keys: "",
    checks_leads.many: "",
    checks_watcher.looks: checks_watcher.CODE,
    checks_guests.instances: "EINSTANCEDOWN",
    checks_guests.standing_still: "",
    checks_guests.strangers: "ENODEORPHANINSTANCE",
    checks_guests.plugged: "",
    checks_guests.ganetis: "",
    checks_disks.quarantined: "",
    checks_disks.leftovers: "ENODEORPHANLV",
    checks_disks.missing: "EINSTANCEMISSINGDISK",
    checks_mirrors.mirrors: "ENODEDRBD",
    checks_mirrors.strangers: "ENODEDRBD",
    checks_records.disks: "",
    checks_records.starts: "",
    checks_processors.processors: "",
    checks_networks.reached: "ENODENET",
    checks_networks.bridges: "",
    checks_networks.filters: "",
    checks_networks.addresses: "",
    checks_ssconf.written: "",
    checks_address.moves: "EMASTERIP",
    checks_records.sizes: "EINSTANCEPOLICY",
    checks_storage.directories: "ENODEFILESTORAGEPATHUNUSABLE",
    checks_storage.units: "ENODELVM",
    checks_storage.allowed: "ENODEFILESTORAGEPATHS",
    checks_storage.providers: "EEXTAGS",
    checks_pools.pools: "",
    checks_devices.devices: "EINSTANCEMISSINGDISK",
    checks_devices.shared: "",
    checks_devices.sizes: "",
    checks_survival.failovers: "ENODEN1",
    checks_survival.losses: checks_survival.CODE,
}
"""Every check, a pure function of what was seen, with the code of what it finds; where
that is empty, findings have one by what they are about."""
KINDS = {
    "cluster": CONFIG,
    "node": "ENODESETUP",
    "instance": "EINSTANCELAYOUT",
    "disk": "EINSTANCEFAULTYDISK",
    "network": "ENODENET",
}
HOOKS = "ENODEHOOKS"
UNUSED = frozenset(
    {
        *("ECLUSTERFILECHECK", "EINSTANCEBADNODE", "EINSTANCEWRONGNODE"),
        *("EINSTANCESPLITGROUPS", "EINSTANCEUNSUITABLENODE"),
        "EINSTANCEMISSINGCFGPARAMETER",
        *("ENODEDRBDVERSION", "ENODEDRBDHELPER", "ENODEFILECHECK", "ENODEHV"),
        *("ENODEOS", "ENODESSH", "ENODETIME", "ENODEOOBPATH", "ENODEUSERSCRIPTS"),
        "ENODESHAREDFILESTORAGEPATHUNUSABLE",
        *("ENODEGLUSTERSTORAGEPATHUNUSABLE", "EGROUPDIFFERENTPVSIZE"),
    }
)
"""Ganeti's other codes, which nothing here has: who ignores them asks for no more."""
SURVIVAL = "nplusone_mem"
"""What Ganeti's clients call the checks that may be left out."""
SURVIVAL_CHECKS = (checks_survival.failovers, checks_survival.losses)


def code(finding: Finding) -> str:
    """Return the code of a finding by what it is about."""
    return KINDS.get(finding.object.partition(" ")[0], CONFIG)


def known() -> frozenset[str]:
    """Return every code that there is."""
    checks = filter(None, CHECKS.values())
    return frozenset({*checks, *KINDS.values(), *CODES, HOOKS})


def check_codes(names: Iterable[str]) -> None:
    """Raise `BadInput` for a code that there is not."""
    for name in names:
        if name not in known() | UNUSED:
            told = ", ".join(sorted(known()))
            raise BadInput(f"verify has no error code '{name}': there is {told}")


def about(config: Config, finding: Finding, group: str) -> bool:
    """Whether a finding is about a group of nodes, or something in it."""
    kind, _, name = finding.object.partition(" ")
    return _group(config, kind, name) == group


def _group(config: Config, kind: str, name: str) -> str | None:
    try:
        if kind == "node":
            return config.node(name).group
        if kind == "instance":
            return config.node(config.instance(name).primary_node).group
        if kind == "disk":
            return group_uuid(config, config.disk(name))
        return config.group(name).uuid if kind == "group" else None
    except NotFound:
        return None
