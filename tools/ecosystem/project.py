"""What a foreign project is to the runner: one TOML file under projects/, read into a record.

    name     = "einops"
    requires = ["einops==0.8.2", "parameterized"]   # pip requirements of the environment
    sdist    = "einops==0.8.2"      # source distribution whose tests are run as they are, or
    script   = "einops.py"          # a pytest file under scripts/ where there is none with tests
    tests    = ["einops/tests"]     # paths inside the unpacked source (default: the whole of it)

Optional: `cwd` (the folder inside the source in which pytest starts), `no_deps` (requirements
installed without their dependencies), `ours_only` and `peer_only` (requirements of one side),
`ours_no_deps` and `peer_no_deps` (both at once),
`args` (for pytest), `env`, `timeout` (seconds per test, default 120) and `[[known]]` tables that
name the `cause` of remaining failures and the `tests` it explains (ids in which * stands for
anything).
"""

from __future__ import annotations

import dataclasses
import pathlib
import re

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Known:
    cause: str
    tests: list[str]

    def explains(self, test: str) -> bool:
        return any(
            re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), test, re.DOTALL)
            for pattern in self.tests
        )


@dataclasses.dataclass(frozen=True)
class Project:
    name: str
    requires: list[str]
    sdist: str = ""
    script: str = ""
    tests: list[str] = dataclasses.field(default_factory=list)
    no_deps: list[str] = dataclasses.field(default_factory=list)
    ours_only: list[str] = dataclasses.field(default_factory=list)
    peer_only: list[str] = dataclasses.field(default_factory=list)
    ours_no_deps: list[str] = dataclasses.field(default_factory=list)
    peer_no_deps: list[str] = dataclasses.field(default_factory=list)
    cwd: str = "."
    args: list[str] = dataclasses.field(default_factory=list)
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    timeout: int = 120
    known: list[Known] = dataclasses.field(default_factory=list)

    @property
    def baseline(self) -> pathlib.Path:
        return HERE / "baselines" / f"{self.name}.txt"

    def cause(self, test: str) -> str:
        """Why this test is known not to pass; empty when nobody has said."""
        return next((known.cause for known in self.known if known.explains(test)), "")


def load(path: pathlib.Path) -> Project:
    fields = tomllib.loads(path.read_text())
    fields["known"] = [Known(**known) for known in fields.get("known", [])]
    try:
        project = Project(**fields)
    except TypeError as error:
        raise SystemExit(f"{path}: {error}") from None
    if bool(project.sdist) == bool(project.script):
        raise SystemExit(f"{path}: name either an sdist or a script")
    return project


def load_all(names: list[str]) -> list[Project]:
    """The projects of that name, or all; an unknown name is an error that lists the known ones."""
    projects = {path.stem: path for path in sorted((HERE / "projects").glob("*.toml"))}
    if unknown := [name for name in names if name not in projects]:
        raise SystemExit(f"no such project: {', '.join(unknown)}; there are {', '.join(projects)}")
    return [load(projects[name]) for name in names or projects]
