# SPDX-License-Identifier: BSD-2-Clause
"""What plans copy, and longer plans as hbal prints them."""

import re
from importlib import import_module

import pytest

from moorage.htools import (
    Cost,
    compacted,
    cost_of,
    keeps_redundancy,
    load,
    look_ahead,
    sample,
    total_cost,
)
from moorage.htools.constraints.violation import Violation
from moorage.htools.formats import text
from moorage.htools.inst import NOWHERE
from moorage.htools.moves import FA, FR, FRF, RF, F, Move, R, apply
from moorage.htools.plans.balancing import Step
from moorage.htools.plans.cost import shown


def _step(state, at, move):
    inst = state.insts[at]
    moved = apply(state.nodes, inst, move, force=True)
    assert not isinstance(moved, Violation)
    return Step(inst, move, moved, 0.0)


# -- what it costs ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "disk", "memory"),
    [(F, 0, 1), (R, 1, 0), (RF, 1, 1), (FRF, 1, 2), (FR, 1, 1)],
)
def test_what_moves_of_mirrored_disks_copy(
    make, some_node, some_inst, verb, disk, memory
):
    nodes = [some_node(f"n{at}") for at in range(3)]
    more = {"disk": 3000, "template": "drbd", "secondary": 1}
    some = [some_inst("up", 0, 1000, **more)]
    some += [some_inst("down", 0, 1000, **more, status="USER_down")]
    state = load(make(nodes, some)).state
    move = Move(verb, NOWHERE if verb == F else 2)
    costs = [cost_of(_step(state, at, move), state.nodes) for at in (0, 1)]
    assert costs == [Cost(3000 * disk, 1000 * memory), Cost(3000 * disk, 0)]


def test_shared_storage_copies_memory_only(make, some_node, some_inst):
    insts = [some_inst("a", 0, 6000), some_inst("b", 1, 512)]
    state = load(make([some_node(f"n{at}") for at in range(3)], insts)).state
    steps = [_step(state, 0, Move(FA, 2)), _step(state, 1, Move(FA, 0))]
    assert total_cost(steps, state.nodes) == Cost(0, 6512)


def test_who_cannot_migrate_copies_no_memory(make, some_node, some_inst):
    nodes = [some_node("n0", offline=True), some_node("n1"), some_node("n2")]
    insts = [
        some_inst("gone", 0, 1000, disk=3000, template="drbd", secondary=1),
        some_inst("planned", 1, 1000, forthcoming=True),
    ]
    state = load(make(nodes, insts)).state
    assert cost_of(_step(state, 0, Move(F)), state.nodes) == Cost(0, 0)
    assert cost_of(_step(state, 0, Move(FR, 2)), state.nodes) == Cost(3000, 0)
    # It is started anew on its secondary; from there it can migrate.
    assert cost_of(_step(state, 0, Move(FRF, 2)), state.nodes) == Cost(3000, 1000)
    assert cost_of(_step(state, 1, Move(FA, 2)), state.nodes) == Cost()


def test_sizes_say_their_unit():
    assert [shown(size) for size in (0, 1023, 1024, 1536)] == [
        "0 MiB",
        "1023 MiB",
        "1.00 GiB",
        "1.50 GiB",
    ]
    assert str(Cost(2048, 5)) == "disk 2.00 GiB, memory 5 MiB"


# -- the program -----------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    """Return the file of a cluster whose longer plan can be compacted."""
    path = tmp_path / "cluster.data"
    path.write_text(text.dump(sample.cluster(37)))
    return path


def hbal(*words):
    return import_module("moorage.cli.htools.hbal").main([str(w) for w in words])


STEP = re.compile(r" +(\d+)\. (\S+) +(\S+) => (\S+) +([0-9.]+) a=([^(]*[^ (])(.*)")


def steps_of(said):
    return [found.groups() for line in said.splitlines() if (found := STEP.match(line))]


def test_hbal_looks_ahead(saved, capsys):
    assert hbal("-t", saved) == 0
    alone = steps_of(capsys.readouterr().out)
    assert hbal("-t", saved, "--lookahead") == 0
    said = capsys.readouterr().out
    steps = steps_of(said)
    assert steps[: len(alone)] == alone
    assert f"Single moves end at {alone[-1][4]}, trying pairs of moves...\n" in said
    assert f" to {steps[-1][4]}\n" in said
    assert f"Solution length={len(steps)}\n" in said


def test_hbal_compacts_and_saves_the_same_placement(saved, tmp_path, capsys):
    for name, more in (("long", []), ("short", ["--compact"])):
        words = ["-t", saved, "--lookahead", "-S", tmp_path / name, "-C", *more]
        assert hbal(*words) == 0
    said = capsys.readouterr().out
    first, second = said.split("Loaded ")[1:]
    before, after = steps_of(first), steps_of(second)
    assert f"Compacted {len(before)} moves into {len(after)}:\n" in second
    assert after[-1][4] == before[-1][4]
    assert [int(step[0]) for step in after] == list(range(1, len(after) + 1))
    assert second.count("echo job ") == len(after)
    files = [(tmp_path / f"{name}.balanced").read_text() for name in ("long", "short")]
    assert files[0] == files[1]


def test_hbal_prints_what_is_copied(saved, capsys):
    assert hbal("-t", saved, "--lookahead", "--compact", "--cost") == 0
    said = capsys.readouterr().out
    costs = [step[-1] for step in steps_of(said)]
    pattern = r" \(disk [0-9.]+ [MG]iB, memory [0-9.]+ [MG]iB\)"
    assert all(re.fullmatch(pattern, cost) for cost in costs)
    state = load(text.parse(saved.read_text())).state
    longer = look_ahead(state, allowed=keeps_redundancy)
    total = total_cost(compacted(longer).steps, state.nodes)
    assert f"The plan copies {shown(total.total)} ({total})\n" in said


def test_hbal_prints_nothing_new_unless_asked(saved, capsys):
    assert hbal("-t", saved, "-C") == 0
    said = capsys.readouterr().out
    assert not any(word in said for word in ("copies", "pairs", "Compacted", "("))


@pytest.mark.parametrize(
    "words",
    [
        ["--cost", "5"],
        ["--lookahead", "-X"],
        ["--compact", "-G", "nowhere"],
    ],
)
def test_bad_combinations_are_one_sentence(saved, words, capsys):
    try:
        status = hbal("-t", saved, *words)
    except SystemExit as exit_:
        status = exit_.code
    said = capsys.readouterr().err
    assert status == 1
    assert said.count("Error: ") == 1
    assert "Traceback" not in said
