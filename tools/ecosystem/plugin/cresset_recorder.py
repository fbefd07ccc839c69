"""A pytest plugin that writes one JSON line per test as soon as it has ended.

JUnit files lose the exact test ids and are written only when the session ends in order, so that a
crash of the process would take all results with it. With a line for the start of each test as well,
the runner knows which test was under way, counts it as crashed, and goes on behind it: the ids in
the file named by ECOSYSTEM_DONE are left out of the run.
"""

from __future__ import annotations

import json
import os
import re

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def stable(nodeid: str) -> str:
    """Parametrizations over functions carry addresses in their ids; those differ in every run."""
    return ADDRESS.sub("", nodeid)


class Recorder:
    def __init__(self, path: str) -> None:
        self.file = open(path, "a", buffering=1)  # noqa: SIM115 - lives as long as the session
        self.worst: dict[str, dict] = {}

    def write(self, **record: object) -> None:
        self.file.write(json.dumps(record) + "\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write(start=stable(nodeid))

    def pytest_runtest_logreport(self, report) -> None:
        """Set-up, call and tear-down come one by one; the worst of them is the outcome."""
        nodeid = stable(report.nodeid)
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xpassed" if report.passed else "xfailed"
        if report.failed and report.when != "call":
            outcome = "error"
        record = self.worst.setdefault(nodeid, {"outcome": "passed", "message": "", "seconds": 0})
        record["seconds"] = round(record["seconds"] + report.duration, 3)
        if outcome != "passed" and record["outcome"] in ("passed", "xpassed"):
            record["outcome"] = outcome
            record["message"] = reason(report)
        if report.when == "teardown":
            self.write(id=nodeid, **self.worst.pop(nodeid))

    def pytest_collectreport(self, report) -> None:
        if report.failed:
            self.write(
                id=f"{stable(report.nodeid)} (collection)",
                outcome="error",
                seconds=0,
                message=reason(report),
            )


def reason(report) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message)[:400]
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])[:400]
    return str(report.longrepr or "")[-400:]


def pytest_configure(config) -> None:
    path = os.environ.get("ECOSYSTEM_RESULTS")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(path), "ecosystem-recorder")


def pytest_collection_modifyitems(config, items) -> None:
    path = os.environ.get("ECOSYSTEM_DONE")
    if not path:
        return
    with open(path) as file:
        done = set(file.read().splitlines())
    left = [item for item in items if stable(item.nodeid) not in done]
    if len(left) != len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(left)])
        items[:] = left
