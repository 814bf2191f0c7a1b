# SPDX-License-Identifier: BSD-2-Clause
"""Alert rules and the dashboard: the door tells all that they name."""

import json
import re
from pathlib import Path

import pytest

from moorage.api.rapi.exposition import Histogram
from moorage.api.rapi.metrics import METRICS
from support.promtool import promtool

SHARE = Path(__file__).parents[3] / "share"
RULES = SHARE / "prometheus" / "moorage.rules.yml"
CASES = SHARE / "prometheus" / "moorage.rules.test.yml"
DASHBOARD = SHARE / "grafana" / "moorage.json"
NAME = re.compile(r"\bmoorage_[a-z_]+")


def told() -> set[str]:
    """Return every name that the door tells."""
    found: set[str] = set()
    for one in METRICS:
        ends = ("_bucket", "_sum", "_count") if isinstance(one, Histogram) else ("",)
        found |= {f"moorage_{one.name}{end}" for end in ends}
    return found


@pytest.mark.slow
def test_the_rules_are_rules() -> None:
    assert "SUCCESS" in promtool(
        RULES.parent, "check", "rules", "--lint-fatal", RULES.name
    )


def test_the_rules_alert_when_they_should() -> None:
    assert "SUCCESS" in promtool(RULES.parent, "test", "rules", CASES.name)


def test_each_rule_has_a_case() -> None:
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    assert alerts == set(re.findall(r"alertname: (\w+)", CASES.read_text()))


@pytest.mark.parametrize("file", [RULES, CASES, DASHBOARD], ids=lambda one: one.name)
def test_the_door_tells_each_metric_that_is_named(file: Path) -> None:
    assert set(NAME.findall(file.read_text())) <= told()


def test_the_dashboard_shows_what_it_asks_for() -> None:
    board = json.loads(DASHBOARD.read_text())
    panels = [one for one in board["panels"] if one["type"] != "row"]
    assert len({one["id"] for one in board["panels"]}) == len(board["panels"])
    for panel in panels:
        assert panel["title"]
        assert panel["targets"]
        assert all(NAME.search(one["expr"]) for one in panel["targets"])
        assert panel["datasource"] == {"type": "prometheus", "uid": "${source}"}


def test_each_expression_of_the_dashboard_can_be_read(tmp_path: Path) -> None:
    board = json.loads(DASHBOARD.read_text())
    asked = [one["expr"] for panel in board["panels"] for one in panel["targets"]]
    rules = [{"record": f"panel:{at}", "expr": one} for at, one in enumerate(asked)]
    file = tmp_path / "panels.yml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert "SUCCESS" in promtool(RULES.parent, "check", "rules", str(file))
