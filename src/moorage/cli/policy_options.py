# SPDX-License-Identifier: BSD-2-Clause
"""Options that set instance policies, of the cluster or of a node group.

``show-ispecs-cmd`` prints those that would set a policy as it is.
"""

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from moorage.errors import BadInput
from moorage.policy_sizes import POLICY_SIZES
from moorage.units import is_whole, parse_size

from .command import Call, Option
from .option_syntax import key_values, names
from .yamlish import defaulted


def _known() -> ModuleType:
    """Return what policies hold; loaded late, for few commands are about them."""
    from moorage.model import ipolicy  # noqa: PLC0415

    return ipolicy


_MIB = {size.name for size in POLICY_SIZES if size.is_size}
_PARTS = {
    "minmax": "ipolicy_bounds_specs",
    "std": "ipolicy_std_specs",
    "disk-templates": "ipolicy_disk_templates",
    "vcpu-ratio": "ipolicy_vcpu_ratio",
    "spindle-ratio": "ipolicy_spindle_ratio",
}
_SPECS = {
    "specs_mem_size": "memory-size",
    "specs_cpu_count": "cpu-count",
    "specs_disk_size": "disk-size",
    "specs_disk_count": "disk-count",
    "specs_nic_count": "nic-count",
}
"""Ganeti's old options: one size each, its min, max and std."""


def _size(name: str, value: Any) -> int:  # noqa: ANN401
    sized = name in _MIB and not is_whole(str(value))
    try:
        return int(parse_size(str(value))) if sized else int(value)
    except (TypeError, ValueError):
        raise BadInput(f"'{value}' does not fit {name}") from None


def spec(text: str) -> dict[str, int]:
    """Return ``memory-size=1G,cpu-count=1,...``: each of the sizes.

    >>> sorted(spec("memory-size=1G,cpu-count=2").items())
    [('cpu-count', 2), ('memory-size', 1024)]
    """
    found = key_values(text)
    for name in found:
        if name not in _known().SIZES:
            known = ", ".join(_known().SIZES)
            raise BadInput(f"there is no size '{name}'", hint=f"one of {known}")
    return {name: _size(name, value) for name, value in found.items()}


def bounds(text: str) -> list[dict[str, dict[str, int]]] | str:
    """Return ``min:SPEC/max:SPEC``, several pairs with ``//`` between them."""
    if text == "default":
        return text
    return [dict(map(_side, pair.split("/"))) for pair in text.split("//")]


def _side(text: str) -> tuple[str, dict[str, int]]:
    side, colon, rest = text.partition(":")
    if side not in ("min", "max") or not colon:
        raise BadInput(f"bounds are min:... and max:..., not '{text}'")
    return side, spec(rest)


def ratio(text: str) -> float | str:
    """Return a ratio, or the word ``default``."""
    if text == "default":
        return text
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"a ratio is a number, not '{text}'") from None


def templates(text: str) -> list[str] | str:
    """Return the templates in a list with commas, or the word ``default``."""
    return text if text == "default" else names(text)


def _old(text: str) -> dict[str, str]:
    found = key_values(text)
    for name in found:
        if name not in ("min", "max", "std"):
            raise BadInput(f"a specification has min, max and std, not '{name}'")
    return found


def changed(call: Call, now: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the field ``ipolicy`` of an opcode, if any part of a policy was given.

    Parameters
    ----------
    now
        Returns what has the policy as it is, by ``ipolicy``.
    """
    given = any(call.option(one) is not None for one in (*_PARTS.values(), *_SPECS))
    return {"ipolicy": _policy(call, now()["ipolicy"])} if given else {}


def _policy(call: Call, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a policy that were given; old options change parts of it."""
    given = {part: call.option(option) for part, option in _PARTS.items()}
    found = {part: value for part, value in given.items() if value is not None}
    old = {size: call.option(one) for one, size in _SPECS.items() if call.option(one)}
    if old and found.keys() & {"minmax", "std"}:
        raise BadInput("--specs-* and --ipolicy-*-specs do not go together")
    return found | (_from_old(old, now) if old else {})


def _from_old(
    old: Mapping[str, Mapping[str, str]], now: Mapping[str, Any]
) -> dict[str, Any]:
    first = now["minmax"][0]
    sides = {"min": dict(first["min"]), "max": dict(first["max"])}
    sides["std"] = dict(now.get("std") or {})
    for size, given in old.items():
        for side, value in given.items():
            sides[side][size] = _size(size, value)
    std = sides.pop("std")
    changed: dict[str, Any] = {"minmax": [sides]}
    if any("std" in given for given in old.values()):
        changed["std"] = std
    return changed


def shown(told: Mapping[str, Any] | None, own: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401
    """Return what is shown of a policy.

    Parameters
    ----------
    own
        What of it is a node group's own: the rest is shown as ``default (x)``. None
        for the cluster's.
    """
    return dict(_lines(told, told if own is None else own)) if told else ""


def _lines(
    told: Mapping[str, Any], own: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    bounds = []
    for number, pair in enumerate(told.get("minmax") or ()):
        sides = {f"{side}/{number}": pair[side] for side in ("min", "max")}
        bounds.append(defaulted(sides if own.get("minmax") else {}, sides))
    yield "bounds specs", [dict(reversed(one.items())) for one in bounds]
    if told is own and told.get("std"):
        yield "std", defaulted(told["std"], told["std"])
    words = {key: told[key] for key in _known().RATIOS if key in told}
    if _TEMPLATES in told:
        words = {"allowed disk templates": ", ".join(told[_TEMPLATES]), **words}
    for word, value in words.items():
        key = word if word in told else _TEMPLATES
        yield word, value if key in own else f"default ({value})"


_TEMPLATES = "disk-templates"


def flags(policy: Mapping[str, Any], *, standard: bool) -> Iterator[str]:
    """Yield the options that set a policy.

    Parameters
    ----------
    standard
        Whether it has a standard specification, as a cluster's has.

    >>> list(flags({"vcpu-ratio": 4.0}, standard=False))
    ['--ipolicy-vcpu-ratio 4.0']
    """
    if policy.get("minmax"):
        pairs = (
            "/".join(f"{side}:{_typed(pair[side])}" for side in ("min", "max"))
            for pair in policy["minmax"]
        )
        yield f"--ipolicy-bounds-specs {'//'.join(pairs)}"
    if standard and policy.get("std"):
        yield f"--ipolicy-std-specs {_typed(policy['std'])}"
    if policy.get("disk-templates"):
        yield f"--ipolicy-disk-templates {','.join(policy['disk-templates'])}"
    for ratio in ("vcpu-ratio", "spindle-ratio"):
        if ratio in policy:
            yield f"--ipolicy-{ratio} {policy[ratio]}"


def _typed(sizes: Mapping[str, int]) -> str:
    return ",".join(f"{name}={value}" for name, value in sizes.items())


OPTIONS = (
    Option(
        ("--ipolicy-bounds-specs",),
        "which sizes instances have: min:SPEC/max:SPEC, SPEC as memory-size=128,"
        "cpu-count=1,disk-size=1,disk-count=1,nic-count=0,spindle-use=1",
        "BOUNDS",
        bounds,
    ),
    Option(
        ("--ipolicy-disk-templates",),
        "how disks of instances may be stored",
        "TEMPLATES",
        templates,
    ),
    Option(
        ("--ipolicy-vcpu-ratio",), "virtual processors for each real one", "N", ratio
    ),
    Option(("--ipolicy-spindle-ratio",), "instances for each spindle", "N", ratio),
    *(
        Option(
            (f"--{one.replace('_', '-')}",),
            f"{size} of instances, as Ganeti had it",
            "min=N,max=N",
            _old,
        )
        for one, size in _SPECS.items()
    ),
)
"""Options of node groups; the cluster has one more."""
STANDARD = Option(
    ("--ipolicy-std-specs",),
    "the size that capacity is counted in: memory-size=128,cpu-count=1,...",
    "SPEC",
    spec,
)
