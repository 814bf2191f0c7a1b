# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311 - draws
"""A plan's promise: what can be lost before it can be lost after it, node by node."""

from random import Random

import pytest

from moorage.cli.htools import hbal, hcheck
from moorage.htools import Searcher, balance, load, sample, unlosable
from moorage.htools.formats import text
from moorage.htools.survival.keeping import Keeper
from moorage.htools.survival.ways import another_way, is_way

BATCHES = 8
EACH = 60


def shared_cluster(seed: int):
    """Return a random cluster of one group, half of its instances on shared storage."""
    draw = Random(seed)
    shape = sample.Shape(
        kind=draw.choice(("shared", "shared", "mixed")),
        nodes=draw.randint(3, 7),
        instances=draw.randint(6, 24),
        fill=draw.uniform(0.4, 0.9),
        oddity=0.0,
        uneven=draw.random() < 0.5,
    )
    return sample.cluster(seed, shape)


def loaded(path):
    """Return the state that a file describes."""
    return load(text.parse(path.read_text())).state


@pytest.mark.requirement("S2-02", "S2-08")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_what_could_be_lost_can_be_lost_after_the_plan_is_saved_and_read(
    batch, tmp_path, capsys
):
    start, words = tmp_path / "start", ["-q", "-S", str(tmp_path / "plan")]
    moved = whole = 0
    for seed in range(batch * EACH, (batch + 1) * EACH):
        start.write_text(text.dump(shared_cluster(seed)))
        assert hbal.main(["-t", str(start), *words]) == 0
        moved += "=>" in capsys.readouterr().out
        before = set(unlosable(loaded(start)))
        end = tmp_path / "plan.balanced"
        if end.exists():
            assert set(unlosable(loaded(end))) <= before, seed
            whole += not before
            end.unlink()
    assert moved > EACH // 2
    assert whole > EACH // 5


# Restarting in another order, somebody is stranded after the plan of each of these.
@pytest.mark.requirement("S2-08")
@pytest.mark.parametrize("seed", [114, 123, 980, 1417])
def test_a_plan_from_redundant_ends_redundant_for_hcheck(seed, tmp_path, capsys):
    start = tmp_path / "start"
    start.write_text(text.dump(shared_cluster(seed)))
    assert hbal.main(["-t", str(start), "-S", str(tmp_path / "plan")]) == 0
    for name in ("start", "plan.balanced"):
        capsys.readouterr()
        hcheck.main(["-t", str(tmp_path / name), "--machine-readable"])
        assert "HCHECK_INIT_CLUSTER_GN1_FAIL=0" in capsys.readouterr().out


def with_a_way():
    """Yield clusters with a node that can be lost by hand only."""
    for seed in range(400):
        state = load(shared_cluster(seed)).state
        found = [at for at in unlosable(state) if another_way(state, at)[0] is not None]
        if found:
            yield state, found


def test_a_node_that_can_be_lost_by_hand_stays_so_at_least():
    checked = 0
    for state, nodes in with_a_way():
        plan = balance(state, search=Searcher().best_step, allowed=Keeper())
        for at in set(nodes).intersection(unlosable(plan.end)):
            way, _ = another_way(plan.end, at)
            assert way is not None
            assert is_way(plan.end, at, way)
        checked += len(nodes)
    assert checked > 10


def test_a_way_that_leads_to_a_full_node_is_none():
    state, nodes = next(with_a_way())
    way, _ = another_way(state, nodes[0])
    assert way is not None
    assert is_way(state, nodes[0], way)
    assert not is_way(state, nodes[0], way[1:])
    everywhere_here = tuple((inst, way[0][1]) for inst, _ in way)
    assert way == everywhere_here or not is_way(state, nodes[0], everywhere_here)


def test_a_filter_names_the_node_that_a_refused_move_would_break():
    refused = 0
    for seed in range(60):
        keeper = Keeper()
        state = load(shared_cluster(seed)).state

        def asked(state, moved, keeper=keeper):
            nonlocal refused
            allowed = keeper(state, moved)
            if not allowed:
                refused += 1
                before, after = unlosable(state), unlosable(state.after(moved))
                assert keeper.broken in after
                assert (
                    keeper.broken not in before or another_way(state, keeper.broken)[0]
                )
            return allowed

        balance(state, search=Searcher().best_step, allowed=asked)
    assert refused > 20
