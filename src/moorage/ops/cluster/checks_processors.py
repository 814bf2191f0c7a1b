# SPDX-License-Identifier: BSD-2-Clause
"""Verify that instances can have their ``cpu_type`` wherever they may have to start."""

from collections.abc import Iterator

from moorage.jobs import Ask
from moorage.model import Config, Instance, Node
from moorage.model.processors import WHATEVER, Processor
from moorage.ops.planning import cpu_models
from moorage.protocol import TryProcessor
from moorage.units import counted

from .observation import Finding, Seen

Wanted = dict[tuple[str, TryProcessor], list[Instance]]
"""Instances by their node group and what their processors are to be."""


def ask(config: Config) -> Iterator[Ask[Processor | None]]:
    """Ask the nodes of each group for the processors that its instances are to have."""
    for group, what in _wanted(config):
        for node in config.nodes_in(config.group(group)):
            if not node.offline:
                yield Ask(node.uuid, what)


def processors(seen: Seen) -> Iterator[Finding]:
    """Find nodes that lack what instances of their group are to have."""
    for (group, what), instances in _wanted(seen.config).items():
        for node in seen.config.nodes_in(seen.config.group(group)):
            found = seen.view.told(Ask(node.uuid, what))
            if found and (why := cpu_models.lack(found)):
                name = seen.config.group(group).name
                yield _finding(node, name, what, instances, why)


def _finding(
    node: Node, group: str, what: TryProcessor, instances: list[Instance], why: str
) -> Finding:
    own = sorted(one.name for one in instances if one.primary_node == node.uuid)
    if own:
        others = f" and {counted(len(own) - 1, 'other')}" if own[1:] else ""
        told = f"instance {own[0]}{others} cannot start with cpu_type={what.cpu_type}"
    else:
        count = counted(len(instances), "instance")
        told = f"{count} with cpu_type={what.cpu_type} of its group cannot start here"
    hint = f"what all nodes of the group have: gnt-group cpu-models {group}"
    return Finding(f"node {node.name}", f"{told}: {why}", hint, warning=not own)


def _wanted(config: Config) -> Wanted:
    found: Wanted = {}
    for instance in config.named(Instance):
        what = cpu_models.wanted(config, instance)
        if what and what.cpu_type not in WHATEVER:
            found.setdefault((config.home(instance).group, what), []).append(instance)
    return found
