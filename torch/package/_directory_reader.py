"""Records of a package, from an archive or from the folder it was unpacked to."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import IO


class DirectoryReader:
    """Records as files of a folder."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    def get_record(self, name: str) -> bytes:
        return (self.directory / name).read_bytes()

    def has_record(self, path: str) -> bool:
        return (self.directory / path).is_file()

    def get_all_records(self) -> list[str]:
        files = (p for p in sorted(self.directory.rglob("*")) if p.is_file())
        return [p.relative_to(self.directory).as_posix() for p in files]

    def path_of(self, name: str) -> str | None:
        return str(self.directory / name)


class ArchiveReader:
    """Records of a zip archive, which all lie in one folder of it."""

    def __init__(self, source: str | IO[bytes]) -> None:
        try:
            self._zip = zipfile.ZipFile(source)
        except zipfile.BadZipFile as error:
            raise RuntimeError(f"not a package: {error}") from error
        names = [n for n in self._zip.namelist() if not n.endswith("/")]
        self._folder = names[0].partition("/")[0] + "/" if names else ""
        self._names = [n[len(self._folder) :] for n in names if n.startswith(self._folder)]

    def get_record(self, name: str) -> bytes:
        try:
            return self._zip.read(self._folder + name)
        except KeyError:
            raise FileNotFoundError(f"no record {name!r} in the package") from None
        except (zipfile.BadZipFile, EOFError, OSError) as error:
            raise RuntimeError(f"record {name!r} of the package is damaged: {error}") from error

    def has_record(self, path: str) -> bool:
        return path in self._names

    def get_all_records(self) -> list[str]:
        return list(self._names)

    def path_of(self, name: str) -> str | None:
        return None


class ResourceReader:
    """The files of one module of a package, for importlib.resources."""

    def __init__(self, reader: DirectoryReader | ArchiveReader, folder: str) -> None:
        self._reader, self._folder = reader, folder

    def open_resource(self, resource: str) -> io.BytesIO:
        return io.BytesIO(self._reader.get_record(f"{self._folder}/{resource}"))

    def resource_path(self, resource: str) -> str:
        path = self._reader.path_of(f"{self._folder}/{resource}")
        if path is None:
            raise FileNotFoundError(f"{resource} lies in an archive")
        return path

    def is_resource(self, name: str) -> bool:
        return self._reader.has_record(f"{self._folder}/{name}")

    def contents(self) -> list[str]:
        front = self._folder + "/"
        below = (r[len(front) :] for r in self._reader.get_all_records() if r.startswith(front))
        return list(dict.fromkeys(b.partition("/")[0] for b in below))
