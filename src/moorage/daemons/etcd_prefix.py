# SPDX-License-Identifier: BSD-2-Clause
"""The prefix in etcd of a cluster that is made, or ends."""

import sys
import uuid

from msgspec.structs import replace

from moorage.errors import Exists
from moorage.model import Change, Node
from moorage.store import Damaged, Elsewhere, etcd_of
from moorage.store.etcd import EtcdSettings, EtcdStore, settings_from

from .paths import MasterPlaces


def of_new(word: str, change: Change) -> EtcdSettings:
    """Return where in etcd the state of a new cluster is to be."""
    given = settings_from(word)
    if given.cluster:
        raise Exists(
            f"{word} is the file of a cluster that is made already",
            hint="give the members, and a prefix that nobody uses",
        )
    node = next(one for one in change.put if isinstance(one, Node))
    return replace(given, cluster=str(uuid.uuid4()), node=node.uuid)


async def check_free(etcd: EtcdSettings) -> None:
    """Raise an error if etcd gives no answer, or holds a state there already."""
    store = EtcdStore(etcd)
    try:
        head, _ = await store.whole()
        empty = not head.version
    except (Damaged, Elsewhere):  # another cluster's, whole or not
        empty = False
    finally:
        await store.close()
    if not empty:
        raise Exists(
            f"there is a cluster in {etcd.label}",
            hint="give a prefix that nobody uses",
        )


async def forget(places: MasterPlaces) -> None:
    """Remove this cluster's state from etcd; another one's is none of ours."""
    settings = etcd_of(places.store)
    if not settings:
        return
    store = EtcdStore(settings, new=False)
    try:
        await store.lead()
        await store.drop()
    except Damaged as error:
        sys.stderr.write(f"Warning: what is in etcd stays: {error.message}\n")
    finally:
        await store.close()
