# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on keys and certificates: of a node, and of the authority on the master."""

from msgspec import Struct

from .verb import AtMaster, Reading, Verb


class MakeRequest(Reading[str], frozen=True, tag="keys.request"):
    """Return the request for a certificate of a new key of this node, as PEM."""

    lapsed = True


class TakeCertificate(Verb[None], frozen=True, kw_only=True, tag="keys.take"):
    """Serve with a new certificate from now on.

    Attributes
    ----------
    certificate
        Of this node, as PEM.
    """

    lapsed = True
    certificate: str


class TrustAuthorities(Verb[None], frozen=True, kw_only=True, tag="keys.trust"):
    """Take orders from whoever one of some authorities signed, and nobody else.

    Attributes
    ----------
    authorities
        Certificates of those to trust, as PEM.
    """

    authorities: tuple[str, ...]


class KeyRequest(Struct, frozen=True, kw_only=True):
    """A node's request for a certificate, as PEM, and two keys, as pins.

    Attributes
    ----------
    pin
        The new key.
    shown
        The key that the node showed when it answered.
    """

    request: str
    pin: str
    shown: str


class RequestKey(
    AtMaster[KeyRequest], frozen=True, kw_only=True, tag="authority.request"
):
    """Ask a node for a request, and note which key it showed.

    Attributes
    ----------
    any_key
        Believe the node by its certificate alone, whatever key it shows.
    """

    reads = True

    any_key: bool = False


class SignKey(AtMaster[None], frozen=True, kw_only=True, tag="authority.sign"):
    """Sign a request of a node, and let it serve with the certificate.

    Attributes
    ----------
    request
        As PEM.
    by_next
        Whether the next authority signs it.
    """

    request: str
    by_next: bool = False


class AnnounceTrust(
    AtMaster[None], frozen=True, kw_only=True, tag="authority.announce"
):
    """Tell a node which authorities to trust.

    Attributes
    ----------
    only_present
        Whether it is the present one alone, though there is a next one.
    """

    only_present: bool = False


class AuthorityFacts(Struct, frozen=True, kw_only=True):
    """Whose certificates there are on the master, and until when, in seconds.

    Attributes
    ----------
    authority
        The fingerprint of its certificate.
    trusted
        How many authorities are.
    """

    authority: str = ""
    authority_ends: float
    master_ends: float
    trusted: int = 1


class GetAuthority(AtMaster[AuthorityFacts], frozen=True, tag="authority.facts"):
    """Return whose certificates there are on the master, and until when."""

    reads = True


class PrepareAuthority(AtMaster[None], frozen=True, tag="authority.prepare"):
    """Make the next authority; it is trusted beside the present one."""


class AbandonAuthority(AtMaster[None], frozen=True, tag="authority.abandon"):
    """Take back that there is a next authority."""


class SwitchAuthority(AtMaster[None], frozen=True, tag="authority.switch"):
    """Let the next authority be the present one; both are trusted."""


class RetireAuthority(AtMaster[None], frozen=True, tag="authority.retire"):
    """Trust the present authority alone."""


class RenewMaster(AtMaster[None], frozen=True, tag="authority.renew-master"):
    """Give the master a new certificate."""
