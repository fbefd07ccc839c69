"""Modules of settings: plain assignments in a module's source become settings that can be read,
set, patched for a while, saved, compared and hashed. A setting may also be a `Config`, which names
environment variables or an alias. Classes inside the module are groups
(`config.triton.cudagraphs`)."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import os
import types
import typing
from collections.abc import Callable, Iterator

_UNSET_SENTINEL = object()
_PLAIN = (int, float, bool, type(None), str, list, set, tuple, dict)
_TRUE, _FALSE = ("1", "true"), ("0", "false")


@dataclasses.dataclass
class _Config:
    """A setting declared with more than its default. `env_name_force` wins over everything,
    `env_name_default` over the default alone; `alias` is the full name of the setting that is
    meant."""

    default: object = _UNSET_SENTINEL
    justknob: str | None = None
    env_name_default: list[str] | None = None
    env_name_force: list[str] | None = None
    value_type: type | None = None
    alias: str | None = None
    deprecated: bool = False

    def __post_init__(self) -> None:
        if self.justknob is not None and not isinstance(self.default, bool):
            raise AssertionError(
                f"justknobs only support booleans, {self.default} is not a boolean"
            )
        for field in ("env_name_default", "env_name_force"):
            names = getattr(self, field)
            if isinstance(names, str):
                setattr(self, field, [names])


def Config(
    default: object = _UNSET_SENTINEL,
    justknob: str | None = None,
    env_name_default: str | list[str] | None = None,
    env_name_force: str | list[str] | None = None,
    value_type: type | None = None,
    alias: str | None = None,
    deprecated: bool = False,
) -> object:
    """A setting with environment variables or an alias, for the right side of an assignment."""
    return _Config(
        default, justknob, env_name_default, env_name_force, value_type, alias, deprecated
    )


def _environment(names: list[str] | None) -> object:
    for name in names or ():
        text = os.environ.get(name)
        if text is not None:
            low = text.lower()
            return True if low in _TRUE else False if low in _FALSE else text
    return _UNSET_SENTINEL


@dataclasses.dataclass
class _ConfigEntry:
    """The state of one setting."""

    default: object
    value_type: type | None
    user_override: object = _UNSET_SENTINEL
    env_value_force: object = _UNSET_SENTINEL
    env_value_default: object = _UNSET_SENTINEL
    alias: str | None = None
    deprecated: bool = False

    @classmethod
    def of(cls, given: _Config, annotation: type | None) -> _ConfigEntry:
        """The entry of a declaration."""
        return cls(
            given.default,
            given.value_type or annotation or type(given.default),
            env_value_force=_environment(given.env_name_force),
            env_value_default=_environment(given.env_name_default),
            alias=given.alias,
            deprecated=given.deprecated,
        )

    def current(self) -> object:
        """The value in force."""
        for value in (self.env_value_force, self.user_override, self.env_value_default):
            if value is not _UNSET_SENTINEL:
                return value
        # Users may change a default in place: it becomes theirs, so that it can be told apart.
        if isinstance(self.default, (list, set, dict)):
            self.user_override = copy.deepcopy(self.default)
            return self.user_override
        return self.default

    def is_default(self) -> bool:
        """Whether the value is the one that the source gives."""
        return self.current() == self.default


class ContextDecorator(contextlib.ContextDecorator):
    """A context that also decorates functions and classes of tests."""

    def __enter__(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define __enter__")

    def __exit__(self, *error: object) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define __exit__")

    def __call__(self, target: Callable) -> Callable:
        if not isinstance(target, type):
            return super().__call__(target)
        for name in dir(target):
            method = getattr(target, name)
            if name.startswith("test_") and isinstance(method, types.FunctionType):
                setattr(target, name, super().__call__(method))
        return target


class _Patch(ContextDecorator):
    """Settings changed for a while; may be entered again inside itself."""

    def __init__(self, module: ConfigModule, changes: dict[str, object]) -> None:
        self.module, self.changes = module, changes
        self._saved: list[dict[str, object]] = []

    def _recreate_cm(self) -> _Patch:
        return _Patch(self.module, self.changes)

    def __enter__(self) -> None:
        self._saved.append(self.module._saved_overrides(self.changes))
        for name, value in self.changes.items():
            self.module._set(name, value)

    def __exit__(self, *error: object) -> None:
        self.module._restore_overrides(self._saved.pop())


class ConfigModule(types.ModuleType):
    """The class of a module of settings after install_config_module."""

    _config: dict[str, _ConfigEntry]
    _compile_ignored_keys: set[str]
    _hash_digest: bytes | None
    _is_dirty: bool
    _bypass_keys: set[str]

    # ---- reading and setting

    def __getattr__(self, name: str) -> object:
        entry = self.__dict__.get("_config", {}).get(name)
        if entry is None:
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        if entry.alias is not None:
            module, _, setting = entry.alias.rpartition(".")
            return getattr(_module(module), setting)
        return entry.current()

    def __setattr__(self, name: str, value: object) -> None:
        if name in self._bypass_keys:
            super().__setattr__(name, value)
        else:
            self._set(name, value)

    def __delattr__(self, name: str) -> None:
        # What unittest.mock.patch does when it puts back what it found in place.
        if name not in self._config:
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        self._config[name].user_override = _UNSET_SENTINEL
        self.__dict__["_is_dirty"] = True

    def _set(self, name: str, value: object) -> None:
        entry = self._config.get(name)
        if entry is None:
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        if entry.alias is not None:
            module, _, setting = entry.alias.rpartition(".")
            setattr(_module(module), setting, value)
            return
        entry.user_override = value
        self.__dict__["_is_dirty"] = True

    def _saved_overrides(self, names: typing.Iterable[str]) -> dict[str, object]:
        for name in names:
            if name not in self._config:
                raise AssertionError(f"{self.__name__}.{name} does not exist")
        return {
            name: self._config[name].user_override
            if self._config[name].alias is None
            else getattr(self, name)
            for name in names
        }

    def _restore_overrides(self, saved: dict[str, object]) -> None:
        for name, value in saved.items():
            if self._config[name].alias is None:
                self._config[name].user_override = value
            else:
                self._set(name, value)
        self.__dict__["_is_dirty"] = True

    def get_type(self, config_name: str) -> type:
        """The declared type of a setting."""
        return self._config[config_name].value_type

    def is_default(self, config_name: str) -> bool:
        """Whether a setting has its default."""
        return self._config[config_name].is_default()

    # ---- copies

    def get_config_copy(self) -> dict[str, object]:
        """{name: value}, independent of later changes."""
        return {name: copy.deepcopy(getattr(self, name)) for name in self._config}

    shallow_copy_dict = to_dict = get_config_copy

    def _ignored(self) -> list[str]:
        return list(
            getattr(self, "_save_config_ignore", ()) if self._has("_save_config_ignore") else ()
        )

    def _has(self, name: str) -> bool:
        return name in self._config

    def save_config(self) -> bytes:
        """All settings but those named in _save_config_ignore, to be given to load_config."""
        values = self.get_config_copy()
        for name in self._ignored():
            values.pop(name, None)
        import pickle

        return pickle.dumps(values, protocol=2)

    def save_config_portable(self, *, ignore_private_configs: bool = True) -> dict[str, object]:
        """The settings that mean something elsewhere."""
        prefixes = ["_"] if ignore_private_configs else []
        if self._has("_cache_config_ignore_prefix"):
            prefixes += getattr(self, "_cache_config_ignore_prefix")  # noqa: B009
        return {
            name: value
            for name, value in self.get_config_copy().items()
            if not name.startswith(tuple(prefixes))
        }

    def load_config(self, maybe_pickled_config: bytes | dict[str, object]) -> None:
        """Sets what save_config or save_config_portable returned."""
        import pickle

        given = maybe_pickled_config
        for name, value in (given if isinstance(given, dict) else pickle.loads(given)).items():
            if self._has(name):
                self._set(name, value)

    def codegen_config(self) -> str:
        """Assignments that make the settings what they are now."""
        ignored = self._ignored()
        return "\n".join(
            f"{self.__name__}.{name} = {getattr(self, name)!r}"
            for name, entry in self._config.items()
            if name not in ignored
            and (not entry.is_default() or (name == "_save_config_ignore" and ignored))
        )

    def get_hash(self) -> bytes:
        """A digest of the settings that influence compiled code."""
        if self._is_dirty or self._hash_digest is None:
            rows = sorted(
                (name, repr(getattr(self, name)))
                for name in self._config
                if name not in self._compile_ignored_keys
            )
            import hashlib

            digest = hashlib.md5(repr(rows).encode(), usedforsecurity=False).digest()
            self.__dict__["_hash_digest"] = digest
            self.__dict__["_is_dirty"] = False
        return self._hash_digest

    # ---- patches

    def patch(
        self, arg1: str | dict[str, object] | None = None, arg2: object = None, **kwargs: object
    ) -> ContextDecorator:
        """patch("name", value), patch(name=value), patch({...}): a context and a decorator."""
        changes = dict(kwargs)
        if isinstance(arg1, str):
            changes[arg1] = arg2
        elif arg1 is not None:
            changes.update(arg1)
        self._saved_overrides(changes)
        return _Patch(self, changes)

    def _make_closure_patcher(self, **changes: object) -> Callable[[], Callable[[], None]]:
        """A function that makes the changes and returns the function that takes them back."""

        def change() -> Callable[[], None]:
            saved = self._saved_overrides(changes)
            for name, value in changes.items():
                self._set(name, value)
            return functools.partial(self._restore_overrides, saved)

        return change


class SubConfigProxy:
    """A group of settings: `config.group.name` is the setting "group.name"."""

    def __init__(self, config: ConfigModule, prefix: str) -> None:
        super().__setattr__("_config", config)
        super().__setattr__("_prefix", prefix)

    def __getattr__(self, name: str) -> object:
        return getattr(self._config, self._prefix + name)

    def __setattr__(self, name: str, value: object) -> None:
        self._config._set(self._prefix + name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._config, self._prefix + name)


def _module(name: str) -> types.ModuleType:
    import importlib

    return importlib.import_module(name)


def _declarations(
    space: types.ModuleType | type, prefix: str
) -> Iterator[tuple[str, object, type | None]]:
    try:
        annotations = typing.get_type_hints(space)
    except (NameError, TypeError):
        annotations = {}
    for name, value in list(vars(space).items()):
        if name.startswith("__") or isinstance(value, (types.ModuleType, types.FunctionType)):
            continue
        if isinstance(value, type) and value.__module__ == space.__name__ and not prefix:
            yield name, value, None
        elif isinstance(value, (*_PLAIN, _Config)) and not hasattr(typing, name):
            yield prefix + name, value, annotations.get(name)


def _ignored_keys(module: types.ModuleType) -> set[str]:
    """Names whose line in the source is marked "# @compile_ignored"."""
    path = getattr(module, "__file__", None)
    if path is None or not os.path.exists(path):
        return set()
    names, pending = set(), False
    with open(path, encoding="utf-8") as file:
        for line in file:
            name = line.split("=")[0].split(":")[0].strip()
            marked = "@compile_ignored" in line
            if (marked or pending) and name.isidentifier():
                names.add(name)
                pending = False
            elif marked:
                pending = True
    return names


def install_config_module(module: types.ModuleType) -> None:
    """Makes a module of assignments a module of settings."""
    config: dict[str, _ConfigEntry] = {}
    groups: dict[str, type] = {}
    for name, value, annotation in list(_declarations(module, "")):
        if isinstance(value, type):
            groups[name] = value
            continue
        given = value if isinstance(value, _Config) else _Config(default=value)
        config[name] = _ConfigEntry.of(given, annotation)
        del module.__dict__[name]
    for group, cls in groups.items():
        for name, value, annotation in _declarations(cls, f"{group}."):
            given = value if isinstance(value, _Config) else _Config(default=value)
            config[name] = _ConfigEntry.of(given, annotation)
    space = module.__dict__
    space["_config"] = config
    space["_compile_ignored_keys"] = _ignored_keys(module)
    space["_hash_digest"] = None
    space["_is_dirty"] = True
    space["_bypass_keys"] = {"_is_dirty", "_hash_digest", "__annotations__", "__class__"}
    module.__class__ = ConfigModule
    for group in groups:
        space[group] = SubConfigProxy(module, f"{group}.")
