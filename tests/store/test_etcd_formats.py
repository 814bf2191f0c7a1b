# SPDX-License-Identifier: BSD-2-Clause
"""A state in etcd that another version wrote: earlier ones go on, later ones do not."""

import base64
import re

import pytest

from moorage.store import Damaged
from moorage.store.etcd import EtcdSettings, EtcdStore
from moorage.store.migrations import FORMAT
from support.etcd_members import ask

pytestmark = pytest.mark.real


def formatted(etcd: EtcdSettings, number: int | None = None) -> int:
    """Return the format of a state, after giving it another one if need be."""
    key = base64.b64encode(f"{etcd.prefix}/head".encode()).decode()
    (there,) = ask(etcd.endpoints[0], "kv/range", {"key": key})["kvs"]
    head = base64.b64decode(there["value"])
    if number is not None:
        head = re.sub(rb'"format":\d+', b'"format":%d' % number, head)
        body = {"key": key, "value": base64.b64encode(head).decode()}
        ask(etcd.endpoints[0], "kv/put", body)
    (found,) = re.findall(rb'"format":(\d+)', head)
    return int(found)


async def test_who_leads_writes_the_newest_format_and_others_refuse_a_later_one(
    etcd: EtcdSettings,
) -> None:
    store = EtcdStore(etcd)
    await store.lead()
    await store.commit([(("job", "1"), b"a")], expected=0)
    await store.close()
    assert formatted(etcd, 2) == 2
    assert (await store.whole())[1] == {("job", "1"): b"a"}
    assert formatted(etcd) == 2  # who only looks leaves it
    await store.lead()
    assert (await store.load()).records == {("job", "1"): b"a"}
    assert formatted(etcd) == FORMAT
    await store.close()
    later = formatted(etcd, FORMAT + 1)
    said = f"a later Moorage: its format {later} is unknown to this one"
    with pytest.raises(Damaged, match=said):
        await store.lead()
    with pytest.raises(Damaged, match=said):
        await store.whole()
    await store.close()
    assert formatted(etcd) == later
