# SPDX-License-Identifier: BSD-2-Clause
"""What became of a volume, and what keeps it from a server: extensions of ours."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.models import StoryEntry
from moorage_cloud.verbs import hindrances, story

from .shown import ADMIN
from .volumes import VOLUME

routes = Routes()
MOST = 1000


class JobOfStep(Struct, frozen=True):
    """A cluster's job, and what it was asked for."""

    act: str
    job_id: int


class EntryShown(Struct, frozen=True, kw_only=True):
    """One thing that happened to a volume.

    `ended_at` is None for what is under way. Who does not administer the cloud is not
    told of clusters, epochs and jobs.
    """

    number: int | None
    what: str
    about: str
    result: str
    why: str
    size: int
    project_id: str
    user_id: str
    request_id: str
    server_id: str | None
    server_name: str | None
    began_at: str
    ended_at: str | None
    cluster: str | UnsetType | None = UNSET
    epoch: int | UnsetType | None = UNSET
    jobs: list[JobOfStep] | UnsetType = UNSET


class StoryShown(Struct, frozen=True):
    """What became of a volume, the first first."""

    story: list[EntryShown]


class StoryQuery(Struct, frozen=True, kw_only=True):
    """Which part of a story: what is told last, or what is told before a number."""

    limit: Annotated[int, Meta(ge=1, le=MOST)] = MOST
    before: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None


@routes("GET", VOLUME + "/story", rule="moorage:volume_story")
def show_story(call: Call, volume_id: str, query: StoryQuery) -> StoryShown:
    """Tell what became of a volume, since it is the project's."""
    volume, admin = call.volume(volume_id), call.may(ADMIN)
    project = None if call.who.admin else volume.project
    told = story(volume, project, last=query.limit, before=query.before)
    return StoryShown([_shown(one, admin=admin) for one in told])


def _shown(one: StoryEntry, *, admin: bool) -> EntryShown:
    jobs = [JobOfStep(act, number) for act, number in one.jobs]
    return EntryShown(
        number=one.pk,
        what=one.what,
        about=one.about,
        result=one.result,
        why=one.why,
        size=one.size,
        project_id=one.project,
        user_id=one.userid,
        request_id=one.request_id,
        server_id=one.server_uuid or None,
        server_name=one.server or None,
        began_at=moment(one.began),
        ended_at=moment(one.ended) if one.ended else None,
        cluster=(one.cluster or None) if admin else UNSET,
        epoch=one.epoch if admin else UNSET,
        jobs=jobs if admin else UNSET,
    )


class HindranceShown(Struct, frozen=True):
    """One thing in the way, and the smallest change that would help.

    `waits` says that an attach is not refused, but has to wait.
    """

    why: str
    change: str
    waits: bool


class Explained(Struct, frozen=True):
    """Whether a volume can be attached, and what is in the way."""

    volume_id: str
    server_id: str
    attachable: bool
    hindrances: list[HindranceShown]


@routes("GET", VOLUME + "/explain/{server_id}", rule="moorage:volume_explain")
def explain(call: Call, volume_id: str, server_id: str) -> Explained:
    """Tell everything that keeps a volume from a server; nothing is changed."""
    volume, server = call.volume(volume_id), call.server(server_id)
    found = hindrances(volume, server)
    return Explained(
        volume_id=str(volume.uuid),
        server_id=str(server.uuid),
        attachable=all(one.waits for one in found),
        hindrances=[HindranceShown(one.why, one.change, one.waits) for one in found],
    )
