# SPDX-License-Identifier: BSD-2-Clause
"""The back-end parameter always_failover: a migration stops and starts the guest."""

from pathlib import Path

from moorage.testing.scenarios import harbour


async def test_a_migration_becomes_a_failover(tmp_path: Path) -> None:
    cluster = await harbour(tmp_path)
    migrate = {"instance_name": "web1", "target_node": "node2"}

    async def migrated() -> tuple[list[str], list[str]]:
        job = await cluster.finished(
            await cluster.submit("OP_INSTANCE_MIGRATE", **migrate)
        )
        assert job.status == "success", job.ops[0].error
        (op,) = job.ops
        return [task.what for task in op.tasks], [entry[3] for entry in op.log]

    beparams = {"always_failover": True}
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", beparams=beparams)
    done, log = await migrated()
    assert any(what.startswith("stop web1") for what in done)
    assert not any("transfer" in what or "migrate" in what for what in done)
    assert any("always_failover" in line for line in log)
    web1 = cluster.config.instance("web1")
    assert (cluster.config.node(web1.primary_node).name, web1.admin_state) == (
        "node2",
        "up",
    )
    beparams = {"always_failover": False}
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", beparams=beparams)
    migrate["target_node"] = "node1"
    done, log = await migrated()
    assert not any(what.startswith("stop web1") for what in done)
    assert not any("always_failover" in line for line in log)
    await cluster.stop()
