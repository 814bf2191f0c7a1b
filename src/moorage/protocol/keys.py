# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on keys and certificates: of a node, and of the authority on the master."""

from typing import Generic, TypeVar

from msgspec import Struct

from .verb import AtMaster, Reading, Verb

_LEADING = "leading-keys"
R_co = TypeVar("R_co", covariant=True)


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


class OnLeading(Verb[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A step on the keys that lead: none that was held up comes behind a later one."""

    def touched(self) -> frozenset[str]:
        """Return these keys."""
        return frozenset({_LEADING})


class TrustMasters(OnLeading[None], frozen=True, kw_only=True, tag="keys.masters"):
    """Take orders from masters of these certificates, and from nobody else.

    Attributes
    ----------
    certificates
        Of the master and of all candidates, as PEM.
    former
        Of masters that were followed: they are told so.
    issued
        When it is said, in microseconds: whoever was let in earlier, and is not among
        them, was taken back.
    doors
        Those of exports that this master has open, by their digests (`Door.digest`):
        they outlive the key by whose order they were opened.
    """

    limit = 30.0

    certificates: tuple[str, ...]
    former: tuple[str, ...] = ()
    issued: int = 0
    doors: tuple[str, ...] = ()


class TellMasters(AtMaster[None], frozen=True, tag="authority.tell-masters"):
    """Tell a node whose orders to take, as it is on record when it is told."""

    limit = 30.0


class MakeMasterRequest(Reading[str], frozen=True, tag="keys.master-request"):
    """Return the request for a certificate of a new key to lead with, as PEM."""


class TakeMasterKey(OnLeading[None], frozen=True, kw_only=True, tag="keys.take-master"):
    """Keep a certificate to lead with, beside its key.

    Attributes
    ----------
    certificate
        As PEM.
    key
        Of the master itself, for the agent of its own machine; empty for the key that
        the node made.
    """

    limit = 30.0

    certificate: str
    key: str = ""


class MasterRequest(Struct, frozen=True, kw_only=True):
    """A certificate to lead with, as PEM, for a key that is on one machine alone."""

    certificate: str


class RequestMaster(
    AtMaster[MasterRequest], frozen=True, kw_only=True, tag="authority.master"
):
    """Let a candidate make a key to lead with, and sign it.

    Attributes
    ----------
    own
        Whether it is the master itself, which is given its next one.
    """

    reads = True

    own: bool = False


class HandKeyOver(AtMaster[None], frozen=True, tag="authority.hand-over"):
    """Give the master's key to the agent of its own machine: it may lead again."""


class TrustAuthorities(OnLeading[None], frozen=True, kw_only=True, tag="keys.trust"):
    """Take orders from whoever one of some authorities signed, and nobody else.

    A master of before each candidate had a key of its own asks for it.

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
    """Tell a node whom to obey: this master. Journals of earlier versions have it.

    Attributes
    ----------
    only_present
        It made a difference when nodes trusted authorities.
    """

    only_present: bool = False


class AuthorityFacts(Struct, frozen=True, kw_only=True):
    """Whose certificates there are on the master, and until when, in seconds.

    Attributes
    ----------
    authority
        The fingerprint of its certificate.
    trusted
        How many authorities sign: two while one is followed by another.
    master
        The master's certificate, as PEM.
    let_in_by
        Its fingerprint: a node that is let in logs it.
    """

    authority: str = ""
    authority_ends: float
    master_ends: float
    trusted: int = 1
    master: str = ""
    let_in_by: str = ""


class GetAuthority(AtMaster[AuthorityFacts], frozen=True, tag="authority.facts"):
    """Return whose certificates there are on the master, and until when."""

    reads = True


class GetPins(
    AtMaster[tuple[str, ...]], frozen=True, kw_only=True, tag="authority.pins"
):
    """Return the pins of certificates, in their order.

    Attributes
    ----------
    certificates
        As PEM.
    """

    reads = True

    certificates: tuple[str, ...]


class PrepareAuthority(AtMaster[None], frozen=True, tag="authority.prepare"):
    """Make the next authority; it is trusted beside the present one."""


class AbandonAuthority(AtMaster[None], frozen=True, tag="authority.abandon"):
    """Take back that there is a next authority."""


class SwitchAuthority(AtMaster[None], frozen=True, tag="authority.switch"):
    """Let the next authority be the present one; both are trusted."""


class RetireAuthority(AtMaster[None], frozen=True, tag="authority.retire"):
    """Trust the present authority alone."""


class RenewMaster(AtMaster[None], frozen=True, tag="authority.renew-master"):
    """Give the master a new key and certificate.

    Attributes
    ----------
    certificate
        The one that was promised, as PEM: who has it already keeps it, for a step that
        was cut off is done again. Empty for whichever is next.
    """

    certificate: str = ""
