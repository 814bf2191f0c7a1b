# SPDX-License-Identifier: BSD-2-Clause
"""Alerts of the cloud: it tells all that they name, and its page names all of that."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage_cloud.api.operator.metrics import Database
from moorage_cloud.api.wire.counted import COUNTED
from moorage_cloud.models import Heartbeat
from support.promtool import promtool

ROOT = Path(__file__).parents[2]
RULES = ROOT / "share/prometheus/moorage-cloud.rules.yml"
CASES = ROOT / "share/prometheus/moorage-cloud.rules.test.yml"
PAGE = ROOT / "docs/how-to/run-a-cloud.md"
NAME = re.compile(r"\bmoorage_cloud_[a-z_]+")
ENDS = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}


def told() -> Iterator[str]:
    Heartbeat.beat("here:1")
    for one in (*COUNTED.collect(), *Database().collect()):
        yield from (one.name + end for end in ENDS.get(one.type, ("",)))


def test_the_rules_are_rules():
    words = ("check", "rules", "--lint-fatal", RULES.name)
    assert "SUCCESS" in promtool(RULES.parent, *words)


def test_the_rules_alert_when_they_should():
    assert "SUCCESS" in promtool(RULES.parent, "test", "rules", CASES.name)
    alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    assert alerts == set(re.findall(r"alertname: (\w+)", CASES.read_text()))


@pytest.mark.usefixtures("database")
def test_each_metric_that_is_named_is_told_and_each_that_is_told_is_named():
    known = set(told())
    assert set(NAME.findall(RULES.read_text())) <= known
    named = set(NAME.findall(PAGE.read_text()))
    assert {one.removesuffix("_bucket") for one in known} >= named
    plain = {re.sub("_(bucket|sum|count)$", "", one) for one in known}
    assert plain <= named
