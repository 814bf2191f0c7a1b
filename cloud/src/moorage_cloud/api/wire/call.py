# SPDX-License-Identifier: BSD-2-Clause
"""A request on its way through a view."""

from collections.abc import Mapping
from functools import cached_property
from typing import TypeVar

from django.http import HttpRequest
from microversion_parse import Version
from msgspec import Struct, field, structs

from moorage_cloud.identity.who import Identity
from moorage_cloud.models import Server, Snapshot, Volume, VolumeType
from moorage_cloud.tracing import Trace
from moorage_cloud.verbs import Caller, caller

from . import policy
from .address import address

Thing = TypeVar("Thing", Volume, Snapshot, Server)


class Call(Struct, kw_only=True, dict=True):
    """What a view knows of the request that it answers.

    Attributes
    ----------
    base
        The address that links begin with, to the version of the service.
    rule
        What the endpoint asks to be allowed.
    identity
        Who asks; somebody without a name where no token is asked for.
    headers
        Further headers of the answer; a view may add some.
    status
        Of the answer; a view may set another than its endpoint declares.
    """

    request: HttpRequest
    trace: Trace
    version: Version
    base: str
    rule: str
    identity: Identity
    status: int
    headers: dict[str, str] = field(default_factory=dict)

    @cached_property
    def site(self) -> str:
        """The address of the whole service, without a slash at its end."""
        return address(self.request, "/").rstrip("/")

    @cached_property
    def who(self) -> Caller:
        """Who asks, as the verbs know them."""
        return Caller(
            user=self.identity.user_id,
            project=self.identity.project_id,
            admin=self.may("context_is_admin"),
            request_id=self.trace.id,
            global_request_id=self.trace.global_id,
        )

    @property
    def own(self) -> Caller:
        """Who asks, for what is their project's alone."""
        return structs.replace(self.who, admin=False)

    def may(self, rule: str, target: Mapping[str, str] | None = None) -> bool:
        """Whether who asks may do something; by default with their project's things."""
        return policy.may(self.identity, rule, target)

    def check(self, rule: str, target: Mapping[str, str] | None = None) -> None:
        """Refuse who may not; `Forbidden` says which rule says so."""
        policy.check(self.identity, rule, target)

    def volume(self, name: str) -> Volume:
        """Return a volume to who may treat it so; else `NotFound` or `Forbidden`."""
        return self._allowed(caller.volume(self.who, name))

    def snapshot(self, name: str) -> Snapshot:
        """Return a snapshot, as with :meth:`volume`."""
        return self._allowed(caller.snapshot(self.who, name))

    def server(self, name: str) -> Server:
        """Return a server, as with :meth:`volume`."""
        return self._allowed(caller.server(self.who, name))

    def volume_type(self, name: str | None) -> VolumeType:
        """Return a type that who asks can see, by id or name; None for the default."""
        return caller.volume_type(self.who, name)

    def _allowed(self, thing: Thing) -> Thing:
        if self.rule:
            self.check(
                self.rule, {"project_id": thing.project, "user_id": thing.userid}
            )
        return thing
