# SPDX-License-Identifier: BSD-2-Clause
"""Options of ``gnt-cluster modify`` that make and remove storage pools."""

from moorage.errors import BadInput

from .command import Option


def _pair(text: str) -> tuple[str, str]:
    """Return name and provider of ``NAME=PROVIDER``."""
    name, _, provider = text.partition("=")
    if not (name and provider):
        raise BadInput(
            f"a pool is made of a name and a provider, not of '{name}' and '{provider}'"
        )
    return name, provider


OPTIONS = (
    Option(
        ("--add-pool",),
        "make a storage pool of an ExtStorage provider; may be repeated",
        "NAME PROVIDER",
        _pair,
        repeats=True,
        dest="add_pools",
        pair=True,
    ),
    Option(
        ("--remove-pool",),
        "remove a storage pool that no disk is in; may be repeated",
        "NAME",
        repeats=True,
        dest="remove_pools",
    ),
)
