"""Runs other projects' own test suites on our torch and prints how many of the tests that pass on
the peer pass here, with the cause of each that does not.

Usage: run.py [--projects a,b] [--peer PYTHON] [--work FOLDER] [--wheel FILE | --tree FOLDER]
       [--jobs N]
With --peer the suites run there first and the baselines are recorded anew; without, the recorded
ones under baselines/ are the measure. Our torch is that of this tree, or a wheel, or a copy of the
tree's torch/ and functorch/ in another folder. Everything is built under FOLDER (build/ecosystem),
where report.md holds the table and each failure. The exit status is 1 when a project is below 95 %
or has a failure whose cause its file under projects/ does not name.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import pathlib
import platform

import environment
import suite
from project import Project, load_all

THRESHOLD = 0.95


@dataclasses.dataclass
class Baseline:
    """What passes on the peer: the number of tests, and the ids of those that do not pass."""

    torch: str
    passed: int
    others: dict[str, str]

    def write(self, path: pathlib.Path) -> None:
        lines = [f"torch {self.torch}", f"passed {self.passed}"]
        lines += [f"{outcome} {test}" for test, outcome in sorted(self.others.items())]
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(line.replace("\n", " ") for line in lines) + "\n")

    @staticmethod
    def read(path: pathlib.Path) -> Baseline:
        pairs = [line.split(" ", 1) for line in path.read_text().splitlines()]
        others = {test: outcome for outcome, test in pairs[2:]}
        return Baseline(pairs[0][1], int(pairs[1][1]), others)


@dataclasses.dataclass
class Row:
    """One line of the table. `missing` counts tests of the peer that were not even collected."""

    project: Project
    results: suite.Results
    baseline: Baseline | None
    failures: list[str]
    missing: int

    @property
    def expected(self) -> int:
        return self.baseline.passed if self.baseline else len(self.results.tests)

    @property
    def passed(self) -> int:
        others = self.baseline.others if self.baseline else {}
        return sum(test not in others for test in self.results.of("passed"))

    @property
    def ratio(self) -> float:
        return self.passed / self.expected if self.expected else 0.0

    def causes(self) -> dict[str, list[str]]:
        groups = collections.defaultdict(list)
        for test in self.failures:
            groups[self.project.cause(test)].append(test)
        return groups

    def good(self) -> bool:
        unexplained = bool(self.causes().get("")) or bool(self.missing)
        return not self.results.trouble and not unexplained and self.ratio >= THRESHOLD


def compare(project: Project, results: suite.Results, baseline: Baseline | None) -> Row:
    others = baseline.others if baseline else {}
    not_passed = results.of("failed", "error", "crashed", "skipped", "xfailed", "xpassed")
    # Without a baseline nobody knows which of the skipped ones count.
    kinds = () if baseline else ("skipped", "xfailed", "xpassed")
    failures = [
        test
        for test in not_passed
        if test not in others and results.tests[test].outcome not in kinds
    ]
    present = sum(test not in others and "(collection)" not in test for test in results.tests)
    missing = max(baseline.passed - present, 0) if baseline else 0
    return Row(project, results, baseline, failures, missing)


def run_side(project: Project, kind: str, options: argparse.Namespace) -> suite.Results:
    folder = options.work / project.name
    work = folder / f"run-{kind}"
    work.mkdir(parents=True, exist_ok=True)
    venv = folder / kind
    environment.prepare(project, kind, venv, options)
    environment.unpack(project, work / "src", options.work / "sdists")
    print(f"{project.name}: running the tests on {kind}", flush=True)
    results = suite.run(project, venv, work, options.jobs)
    counts = collections.Counter(result.outcome for result in results.tests.values())
    said = ", ".join(f"{number} {outcome}" for outcome, number in counts.most_common())
    print(
        f"{project.name}: {kind}: {said} in {results.seconds:.0f} s {results.trouble}", flush=True
    )
    return results


def run_project(project: Project, options: argparse.Namespace) -> Row:
    if options.peer:
        results = run_side(project, "peer", options)
        if results.trouble:
            raise SystemExit(f"{project.name} on the peer: {results.trouble}")
        others = {
            test: result.outcome
            for test, result in results.tests.items()
            if result.outcome != "passed"
        }
        torch = environment.torch_version(options.peer)
        version = f"{torch}, Python {platform.python_version()}"
        passed = len(results.of("passed"))
        Baseline(version, passed, others).write(project.baseline)
    baseline = Baseline.read(project.baseline) if project.baseline.exists() else None
    if options.only_peer:
        return Row(project, suite.Results(), baseline, [], 0)
    return compare(project, run_side(project, "ours", options), baseline)


def table(rows: list[Row]) -> list[str]:
    lines = [
        "| project | tests | ours | peer | ratio | seconds | causes |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        causes = [
            f"{len(tests)}: {cause or 'UNEXPLAINED'}" for cause, tests in row.causes().items()
        ]
        if row.missing:
            causes.append(f"{row.missing}: not collected here")
        if row.results.trouble:
            causes.append(row.results.trouble)
        peer = str(row.baseline.passed) if row.baseline else "no baseline"
        lines.append(
            f"| {row.project.name} | {len(row.results.tests)} | {row.passed} | {peer} | "
            f"{100 * row.ratio:.1f} % | {row.results.seconds:.0f} | {'; '.join(causes) or '-'} |"
        )
    return lines


def report(rows: list[Row], path: pathlib.Path) -> None:
    lines = ["# Other projects on our torch", "", *table(rows)]
    for row in rows:
        lines += ["", f"## {row.project.name}"]
        if row.baseline:
            lines += ["", f"Baseline: PyTorch {row.baseline.torch}"]
        for cause, tests in row.causes().items():
            lines += ["", f"### {cause or 'Unexplained'}", ""]
            for test in tests:
                result = row.results.tests[test]
                message = " ".join(result.message.split())[:200]
                lines.append(f"- `{test}` {result.outcome}: {message}")
    path.write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--projects", default="", help="comma-separated; default: all")
    parser.add_argument("--peer", default="", help="a Python with PyTorch, to record baselines")
    parser.add_argument("--only-peer", action="store_true", help="record baselines and stop")
    parser.add_argument("--work", type=pathlib.Path, default=environment.ROOT / "build/ecosystem")
    parser.add_argument("--wheel", default="", help="our torch as a wheel instead of the tree")
    parser.add_argument("--tree", type=pathlib.Path, default=environment.ROOT)
    parser.add_argument("--jobs", type=int, default=1, help="test processes (pytest-xdist)")
    options = parser.parse_args()
    options.work, options.tree = options.work.resolve(), options.tree.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    rows = []
    for project in load_all([name for name in options.projects.split(",") if name]):
        rows.append(run_project(project, options))
        report(rows, options.work / "report.md")
    print("\n".join(["", *table(rows), "", f"report: {options.work / 'report.md'}"]))
    return 0 if all(row.good() for row in rows) or options.only_peer else 1


if __name__ == "__main__":
    raise SystemExit(main())
