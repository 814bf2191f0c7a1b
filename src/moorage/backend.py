# SPDX-License-Identifier: BSD-2-Clause
"""Back-end parameters: what an instance has of memory, processors and attention.

One table, for command line, operations and queries alike.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from moorage.errors import BadInput
from moorage.units import parse_size


class Parameter(NamedTuple):
    """One parameter.

    Attributes
    ----------
    kind
        ``size`` (MiB), ``count`` or ``flag``.
    default
        Its value where neither cluster nor instance has one.
    least
        The smallest size or count.
    """

    kind: str
    default: int | bool
    least: int = 1


MEMORY = ("minmem", "maxmem")
"""What a guest may have at least and at most; it starts with the most."""
PARAMETERS: Mapping[str, Parameter] = {
    "minmem": Parameter("size", 128),
    "maxmem": Parameter("size", 128),
    "vcpus": Parameter("count", 1),
    "auto_balance": Parameter("flag", default=True),
    "always_failover": Parameter("flag", default=False),
    "spindle_use": Parameter("count", 1, least=0),
}
"""Every parameter by its name in Ganeti; ``memory`` is another word for two of them."""
DEFAULTS: Mapping[str, int | bool] = {
    name: one.default for name, one in PARAMETERS.items()
}
MOST = 2**31 - 1
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


def aliased(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with ``memory`` as Ganeti's two.

    >>> aliased({"memory": 512, "maxmem": 1024})
    {'minmem': 512, 'maxmem': 1024}
    """
    rest = dict(given)
    memory = rest.pop("memory", None)
    return rest if memory is None else dict.fromkeys(MEMORY, memory) | rest


def merged(old: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with some changed; the value ``default`` drops one.

    >>> merged({"vcpus": 2}, {"memory": 512, "vcpus": "default"})
    {'minmem': 512, 'maxmem': 512}
    """
    new = {**old, **aliased(given)}
    return {name: value for name, value in new.items() if value != "default"}


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a person's words stand for; none means ``default``.

    Raises
    ------
    BadInput
        If a parameter is not known, or its value does not fit.

    >>> read({"memory": "1G", "vcpus": "2", "auto_balance": False})
    {'minmem': 1024, 'maxmem': 1024, 'vcpus': 2, 'auto_balance': False}
    """
    return aliased({name: _read(name, value) for name, value in given.items()})


def _read(name: str, value: Any) -> Any:  # noqa: ANN401
    kind = _named(name).kind
    if value is None or value == "default":
        return "default"
    try:
        if kind == "size":
            return int(parse_size(str(value)))
        if kind == "count" and value.isascii() and value.isdecimal():
            return int(value)
        return value if isinstance(value, bool) else _TRUTHS[value.lower()]
    except (AttributeError, KeyError, ValueError) as error:
        raise BadInput(f"'{value}' does not fit the parameter '{name}'") from error


def _named(name: str) -> Parameter:
    known = {**PARAMETERS, "memory": PARAMETERS[MEMORY[0]]}
    if name not in known:
        told = ", ".join(sorted(known))
        raise BadInput(
            f"there is no back-end parameter '{name}'", hint=f"one of {told}"
        )
    return known[name]


def check(given: Mapping[str, Any]) -> None:
    """Raise `BadInput` for a parameter that is unknown, or no instance could have.

    The value ``default`` stands for the one of the cluster.
    """
    for name, value in given.items():
        _check(name, _named(name), value)
    least, most = (given.get(name) for name in MEMORY)
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise BadInput(
            f"minmem ({least} MiB) is more than maxmem ({most} MiB)",
            hint="-B memory=512M sets both",
        )


def _check(name: str, parameter: Parameter, value: object) -> None:
    if value == "default":
        return
    if parameter.kind == "flag":
        if not isinstance(value, bool):
            raise BadInput(f"{name} is true or false, not '{value}'")
        return
    number = isinstance(value, int) and not isinstance(value, bool)
    if not number or not parameter.least <= value <= MOST:  # type: ignore[operator]
        above = f"from {parameter.least} to {MOST}"
        raise BadInput(f"{name} is a whole number {above}, not '{value}'")
