# SPDX-License-Identifier: BSD-2-Clause
"""``show-ispecs-cmd``: the command that would set an instance policy as it is."""

from collections.abc import Iterator, Mapping
from typing import Any


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
            "/".join(f"{side}:{_words(pair[side])}" for side in ("min", "max"))
            for pair in policy["minmax"]
        )
        yield f"--ipolicy-bounds-specs {'//'.join(pairs)}"
    if standard and policy.get("std"):
        yield f"--ipolicy-std-specs {_words(policy['std'])}"
    if policy.get("disk-templates"):
        yield f"--ipolicy-disk-templates {','.join(policy['disk-templates'])}"
    for ratio in ("vcpu-ratio", "spindle-ratio"):
        if ratio in policy:
            yield f"--ipolicy-{ratio} {policy[ratio]}"


def _words(sizes: Mapping[str, int]) -> str:
    return ",".join(f"{name}={value}" for name, value in sizes.items())
