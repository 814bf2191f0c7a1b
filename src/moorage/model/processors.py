# SPDX-License-Identifier: BSD-2-Clause
"""Models of processors, as nodes tell which of them their guests can have."""

from collections.abc import Mapping

from msgspec import Struct, field

WHATEVER = frozenset({"", "host", "max"})
"""Names that stand for all that a node's accelerator offers: nothing can lack there,
and a guest that moves may miss what it had."""


def model_of(cpu_type: str) -> str:
    """Return the model of a ``cpu_type``, without its features.

    >>> model_of("Nehalem,+aes,avx=off")
    'Nehalem'
    """
    return cpu_type.partition(",")[0]


class Processor(Struct, frozen=True, kw_only=True):
    """What a guest's processors would be on a node.

    Attributes
    ----------
    accelerator
        ``kvm`` or ``tcg``.
    lacking
        The features that are asked for and that the node does not have.
    features, without
        What a guest has and has not of all that this node's QEMU has a name for, where
        that is whatever the node offers (`WHATEVER`); empty for a model with a name of
        its own.
    problem
        Why there is no such processor there, in QEMU's words; empty when there is.
    """

    accelerator: str
    lacking: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    problem: str = ""


class ProcessorModels(Struct, frozen=True, kw_only=True):
    """The models that a node's QEMU knows, and that guests can migrate with.

    Attributes
    ----------
    lacking
        The features of each that the node does not have; none where guests can have
        the model whole.
    """

    accelerator: str
    lacking: dict[str, tuple[str, ...]] = field(default_factory=dict)


def lost(here: Processor, there: Processor) -> tuple[str, ...]:
    """Return the features that a guest has on one node and would not find on another.

    Of one that the other node's QEMU has no name for, nobody can tell.

    >>> old, new = (Processor(accelerator="kvm", lacking=x) for x in (("aes",), ()))
    >>> lost(new, old), lost(old, new), lost(old, old)
    (('aes',), (), ())
    """
    away = set(there.lacking) - set(here.lacking)
    away |= set(here.features) & set(there.without)
    return tuple(sorted(away))


def common(nodes: Mapping[str, ProcessorModels]) -> dict[str, dict[str, str]]:
    """Return for each model which nodes lack it, and what they lack.

    Parameters
    ----------
    nodes
        What each node has, by its name.

    >>> told = {"Nehalem": (), "EPYC": ("xop",)}, {"Nehalem": ()}
    >>> one, two = (ProcessorModels(accelerator="kvm", lacking=x) for x in told)
    >>> common({"a": one, "b": two})
    {'EPYC': {'a': 'xop', 'b': 'the model'}, 'Nehalem': {}}
    """
    names = sorted({name for one in nodes.values() for name in one.lacking})
    return {name: _without(name, nodes) for name in names}


def _without(name: str, nodes: Mapping[str, ProcessorModels]) -> dict[str, str]:
    told = {
        node: ", ".join(one.lacking[name]) if name in one.lacking else "the model"
        for node, one in nodes.items()
    }
    return {node: why for node, why in told.items() if why}
