# SPDX-License-Identifier: BSD-2-Clause
"""Parameters that are of a wrong type, and policies that contradict themselves.

Ganeti's types and words: a value that it would read as another is not wrong.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from moorage.backend import MEMORY
from moorage.disk_templates import FACTS
from moorage.errors import BadInput
from moorage.model.hvkinds import TYPES
from moorage.model.hvparams import Parameters
from moorage.policy_sizes import POLICY_SIZES
from moorage.units import parse_size


class Type(NamedTuple):
    """What a parameter can be.

    Attributes
    ----------
    word
        What a value that does not fit is not.
    fits
        Whether a value does.
    """

    word: str
    fits: Callable[[Any], bool]


def _is_truth(value: object) -> bool:
    return not (isinstance(value, str) and value) or value.lower() in {"true", "false"}


def _reads(read: Callable[[Any], object]) -> Callable[[Any], bool]:
    def fits(value: Any) -> bool:  # noqa: ANN401 - whatever stands in a file
        try:
            read(value)
        except (ValueError, TypeError, OverflowError, BadInput):
            return False
        return True

    return fits


def _size(value: object) -> None:
    parse_size(str(value))


Types = Mapping[str, Type]

_TEXT = Type("string", lambda value: isinstance(value, str) or value is False)
_TEXT_OR_NONE = Type("string", lambda value: value is None or _TEXT.fits(value))
_TRUTH = Type("boolean", _is_truth)
_SIZE = Type("size", _reads(_size))
_WHOLE = Type("integer", _reads(int))
_NUMBER = Type("float", _reads(float))

BACK_END: Types = {
    **dict.fromkeys((*MEMORY, "memory"), _SIZE),
    **dict.fromkeys(("vcpus", "spindle_use"), _WHOLE),
    **dict.fromkeys(("auto_balance", "always_failover"), _TRUTH),
}
CARDS: Types = dict.fromkeys(("mode", "link", "vlan", "filter"), _TEXT)
NODES: Types = {
    "oob_program": _TEXT,
    **dict.fromkeys(("ovs_name", "ovs_link"), _TEXT_OR_NONE),
    **dict.fromkeys(("spindle_count", "ssh_port"), _WHOLE),
    **dict.fromkeys(("exclusive_storage", "ovs"), _TRUTH),
    "cpu_speed": _NUMBER,
}
_HERE = frozenset({"0", "1", "on", "off", "yes", "no"})
_KINDS: Mapping[type, Type] = {
    bool: Type("boolean", lambda v: _is_truth(v) or v.lower() in _HERE),
    int: Type("integer", lambda v: v == "" or _WHOLE.fits(v)),
    str: _TEXT,
}
"""What can be read here as such a value; Ganeti reads fewer words."""
HYPERVISORS: Types = {name: _KINDS[kind] for name, kind in TYPES.items()}
_ANY = Type("", lambda _: True)
STARTED_WITH: Types = {
    name: one if name in Parameters.__struct_fields__ else _ANY
    for name, one in HYPERVISORS.items()
}
"""The same, but for what has no effect here: any value of that is accepted."""
_SIZES: Types = {size.name: _WHOLE for size in POLICY_SIZES}
_RATIOS = ("spindle-ratio", "vcpu-ratio")
_TEMPLATES = "disk-templates"
_MODES = ("bridged", "routed", "openvswitch", "pool", "auto")


def misfit(params: Mapping[str, Any], types: Types) -> str:
    """Return the first parameter that does not fit, in words; empty if all do."""
    if not isinstance(params, Mapping):
        return f"Expected dictionary, got '{params}'"
    for name, value in params.items():
        if name not in types:
            return f"Unknown parameter '{name}'"
        if not types[name].fits(value):
            return f"'{name}' (value {value}) is not a valid {types[name].word}"
    return ""


def card(params: Mapping[str, Any]) -> str:
    """Return why a network card cannot have these parameters; empty if it can."""
    mode = params.get("mode", _MODES[0])
    if mode not in _MODES:
        return f"Invalid NIC mode '{mode}'"
    no_link = mode == _MODES[0] and not params.get("link", True)
    return "Missing bridged NIC link" if no_link else ""


def policy(rules: Mapping[str, Any], *, of_cluster: bool) -> Iterator[str]:
    """Yield what is wrong with an instance policy, the cluster's filled in."""
    yield from (
        f"invalid instance policy: {why}" for why in _contradiction(rules, of_cluster)
    )
    for number, pair in enumerate(_pairs(rules)):
        for end, sizes in pair.items():
            if why := misfit(sizes, _SIZES):
                yield f"invalid ipolicy/minmax[{number}]/{end}: {why}"
    if why := misfit(rules.get("std", {}), _SIZES):
        yield f"invalid ipolicy/std: {why}"


def _pairs(rules: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = rules.get("minmax")
    pairs = found if isinstance(found, list | tuple) else []
    return [one for one in pairs if isinstance(one, Mapping)]


def _contradiction(rules: Mapping[str, Any], of_cluster: bool) -> Iterator[str]:
    yield from _bounds(rules, of_cluster)
    templates = rules.get(_TEMPLATES, True)
    if not templates:
        yield "Instance policy must contain at least one disk template"
    elif isinstance(templates, list | tuple):
        unknown = [str(one) for one in templates if str(one) not in FACTS]
        if unknown:
            yield f"Invalid disk template(s) {', '.join(unknown)}"
    elif templates is not True:
        yield f"for {_TEMPLATES}, expecting list, got {type(templates)}"
    for name in _RATIOS:
        try:
            float(rules.get(name, 0))
        except (ValueError, TypeError, OverflowError) as error:
            yield f"Invalid value for key '{name}': '{rules[name]}', error: {error}"
    unknown = sorted(rules.keys() - {"minmax", "std", _TEMPLATES, *_RATIOS})
    if unknown:
        yield f"Invalid keys in ipolicy: {', '.join(unknown)}"


def _bounds(rules: Mapping[str, Any], of_cluster: bool) -> Iterator[str]:
    if "minmax" not in rules:
        return
    pairs, usual = _pairs(rules), rules.get("std")
    if not pairs or len(pairs) != len(rules["minmax"]):
        yield "Empty minmax specifications"
        return
    if of_cluster:
        if not isinstance(usual, Mapping):
            yield "Missing key in ipolicy: std"
            return
        yield from _missing("std", usual)
    wrong = [why for pair in pairs for why in _pair(pair)]
    yield from wrong
    if of_cluster and not wrong and not any(_within(usual, pair) for pair in pairs):
        yield "Invalid std specifications"


def _pair(pair: Mapping[str, Any]) -> Iterator[str]:
    missing = sorted({"min", "max"} - pair.keys())
    if missing:
        yield f"Missing instance specification: {', '.join(missing)}"
        return
    for end in ("min", "max"):
        yield from _missing(end, pair[end])
    for name in _SIZES:
        least, most = (_number(pair[end], name) for end in ("min", "max"))
        if least is not None and most is not None and least > most:
            yield (
                f"Invalid specification of min/max values for {name}: {least}/{most}"
            )


def _missing(end: str, sizes: Any) -> Iterator[str]:  # noqa: ANN401
    missing = [name for name in _SIZES if name not in _map(sizes)]
    if missing:
        told = ", ".join(missing)
        yield f"Missing instance specs parameters for {end}: {told}"


def _within(usual: Any, pair: Mapping[str, Any]) -> bool:  # noqa: ANN401
    """Whether the usual sizes, as far as they are numbers, lie within bounds."""
    for name in _SIZES:
        least, most = (_number(pair[end], name) for end in ("min", "max"))
        value = _number(usual, name)
        if None in (least, most, value):
            continue
        if not least <= value <= most:  # type: ignore[operator]
            return False
    return True


def _number(sizes: Any, name: str) -> float | None:  # noqa: ANN401
    value = _map(sizes).get(name)
    return value if isinstance(value, int | float) else None


def _map(value: Any) -> Mapping[str, Any]:  # noqa: ANN401
    return value if isinstance(value, Mapping) else {}
