"""CPU seconds by test file, a pytest plugin: `make test ARGS="-p tests.helpers.costs"` prints them after the tests.

A test costs what its process and all that descend from it used, fixtures included. What a worker needs to import and
collect the tests stands in a line of its own. Memory is the most that a worker held, by Linux and macOS.
"""

from __future__ import annotations

import os
import resource
import sys
from collections import Counter

import psutil
import pytest

KEY = pytest.StashKey[float]()
PEAK = pytest.StashKey[float]()


def cpu_seconds() -> float:
    """Of this process and of its descendants: those that live, and those that their parents have waited for.

    A browser that ends takes its seconds along: there the sum falls, which costs nobody anything.
    """
    total, me = 0.0, psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.Error:  # it has just ended
            continue
    return total


def peak_megabytes() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


class Costs:
    """What the workers report, in the process with the terminal."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self.each: Counter[str] = Counter()
        self.memory: dict[str, float] = {}
        self.grown: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Sum up one test's costs, which its teardown carries."""
        for name, value in report.user_properties:
            if report.when == "teardown" and name == "costs":
                path = report.nodeid.partition("::")[0]
                self.seconds[path] += value["cpu"]
                self.tests[path] += 1
                self.each[report.nodeid] = value["cpu"]
                self.grown[path] += value["grown"]
                self.seconds["(imports and collection)"] += value["before"]
                self.memory[value["worker"]] = max(self.memory.get(value["worker"], 0), value["peak"])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the dearest files and tests first."""
        terminalreporter.section("CPU seconds, tests, and growth of a worker's peak memory [MB], by file")
        for path, seconds in self.seconds.most_common():
            terminalreporter.write_line(f"{seconds:8.2f} {self.tests[path]:5d} {self.grown[path]:6.0f}  {path}")
        terminalreporter.write_line(f"{self.seconds.total():8.2f} {self.tests.total():5d}         all")
        terminalreporter.write_line("the dearest tests:")
        for name, seconds in self.each.most_common(40):
            terminalreporter.write_line(f"{seconds:8.2f}        {name}")
        peaks = ", ".join(f"{name} {peak:.0f} MB" for name, peak in sorted(self.memory.items()))
        terminalreporter.write_line(f"peak memory: {peaks}")


def pytest_configure(config: pytest.Config) -> None:
    """Start to sum."""
    config.pluginmanager.register(Costs())
    config.stash[KEY] = 0.0


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> pytest.TestReport:
    """Hand the costs so far to the report; the last of a test's reports carries all of it."""
    report = yield
    if call.when == "teardown":
        now, peak, began = cpu_seconds(), peak_megabytes(), item.config.stash[KEY]
        value = {"cpu": max(0.0, now - item.stash[KEY]), "before": 0.0 if began else item.stash[KEY], "peak": peak}
        value |= {"grown": peak - item.stash[PEAK], "worker": os.environ.get("PYTEST_XDIST_WORKER", "one process")}
        item.config.stash[KEY] = now
        report.user_properties.append(("costs", value))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note where a test begins."""
    item.stash[KEY], item.stash[PEAK] = cpu_seconds(), peak_megabytes()
