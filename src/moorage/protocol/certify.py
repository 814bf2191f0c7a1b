# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that hold a provider to its contract, with volumes of their own."""

from typing import Any, Generic, TypeVar

from moorage.storage.certify import CheckResult, Order, Scripts
from moorage.units import Mib

from .verb import LONG, Reading, Verb

R_co = TypeVar("R_co", covariant=True)


class OnProvider(Verb[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb of a certification.

    Attributes
    ----------
    run
        What tells the volumes of this certification from all others.
    params
        Of every disk of it.
    size
        Of each volume, in MiB.
    check
        The name of a check; empty for all of them.
    """

    limit = LONG

    provider: str
    run: str
    params: dict[str, Any] = {}
    size: Mib
    check: str = ""

    def touched(self) -> frozenset[str]:
        """Return the certification: its steps wait for each other."""
        return frozenset({f"certify-{self.run}"})

    def order(self) -> Order:
        """Return what is to be certified."""
        return Order(
            provider=self.provider, run=self.run, params=self.params, size=self.size
        )


class TryProvider(
    OnProvider[CheckResult], frozen=True, kw_only=True, tag="provider.try"
):
    """Do a part of a check; what the provider does wrong is an answer.

    Attributes
    ----------
    part
        Which one; after the only one, its volumes are removed.
    earlier
        What came of the part before, on another node perhaps; for the first one, of
        the check whether the provider runs at all.
    """

    part: int = 0
    earlier: CheckResult | None = None


class ClearProvider(
    OnProvider[tuple[str, ...]], frozen=True, kw_only=True, tag="provider.clear"
):
    """Let go of the volumes that are left; return the names of those that stay.

    Attributes
    ----------
    remove
        Whether to remove them, too: the node that made them does.
    """

    remove: bool = True


class DigestProvider(
    Reading[Scripts], frozen=True, kw_only=True, tag="provider.digest"
):
    """Return what a provider's files are, byte by byte.

    Raises
    ------
    Failed
        If it is not valid here.
    """

    provider: str
