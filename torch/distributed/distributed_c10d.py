"""Process groups: making, naming, finding and destroying them. The collectives are in _collectives
and _object_collectives; this module has the state (`_world`), which those read here each time, so
that a program that puts another one in its place is obeyed."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import (
    DebugLevel,
    FakeProcessGroup,
    HashStore,
    PrefixStore,
    ProcessGroup,
    ProcessGroupGloo,
    ProcessGroupMPI,
    ProcessGroupNCCL,
    Store,
    _DistributedBackendOptions,
    _ProcessGroupWrapper,
    _register_process_group,
    _resolve_process_group,
    _unregister_all_process_groups,
    _unregister_process_group,
    get_debug_level,
    set_debug_level_from_env,
)
from torch._c10d import _flight_describe
from torch.distributed._backends import (
    Backend,
    BackendConfig,
    is_backend_available,
)
from torch.distributed.constants import default_pg_timeout
from torch.distributed.rendezvous import rendezvous

_backend = Backend.UNDEFINED

# Keys of stores that begin with it are those of barriers; stores of other packages look for it.
STORE_BASED_BARRIER_PREFIX = "store_based_barrier_key"


class _World:
    """What this process knows of its groups."""

    def __init__(self) -> None:
        self.default_pg: ProcessGroup | None = None
        self.pg_map: dict[ProcessGroup, tuple[str, Store]] = {}
        self.pg_names: dict[ProcessGroup, str] = {}
        self.pg_group_ranks: dict[ProcessGroup, dict[int, int]] = {}
        self.pg_backend_config: dict[ProcessGroup, str] = {}
        self.group_count = 0
        self.tags_to_pg: dict[str, list[ProcessGroup]] = {}
        self.pg_to_tag: dict[ProcessGroup, str] = {}
        self.pg_coalesce_state: dict[ProcessGroup, list] = {}
        self.comms: list = []

    @property
    def pg_config_info(self) -> list[dict[str, Any]]:
        """What each group is, for reports."""
        return [
            {
                "pg_name": self.pg_names[pg],
                "pg_desc": pg.group_desc,
                "backend_config": self.pg_backend_config.get(pg, ""),
                "ranks": list(ranks),
                "group_size": len(ranks),
                "group_count": self.group_count,
            }
            for pg, ranks in self.pg_group_ranks.items()
        ]


_world = _World()


class _WorldMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes."""
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, pg: ProcessGroup | None) -> None:
        _world.default_pg = pg


class group(metaclass=_WorldMeta):
    """Where WORLD, the group of all processes, is found."""


class GroupMember(metaclass=_WorldMeta):
    """WORLD, and what processes outside of a group get for it."""

    NON_GROUP_MEMBER = -100


# ---- questions -----------------------------------------------------------------------------------
def is_initialized() -> bool:
    """Whether this process is part of a group."""
    return GroupMember.WORLD is not None


def _get_default_group() -> ProcessGroup:
    if not is_initialized():
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return GroupMember.WORLD


def _get_default_store() -> Store:
    return _world.pg_map[_get_default_group()][1]


def _group_or_default(pg: ProcessGroup | None) -> ProcessGroup:
    return _get_default_group() if pg is None or pg is GroupMember.WORLD else pg


def _rank_not_in_group(pg: ProcessGroup | int | None) -> bool:
    return pg is not None and pg == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(name: str) -> None:
    rank = "" if GroupMember.WORLD is None else GroupMember.WORLD.rank()
    warnings.warn(
        f"Running {name} on global rank {rank} which does not belong to the given group.",
        stacklevel=3,
    )


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's number in the group; -1 outside of it."""
    if _rank_not_in_group(group):
        return -1
    mine = _get_default_group().rank()
    is_world = group is None or group is GroupMember.WORLD
    return mine if is_world else get_group_rank(group, mine)


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes the group has; -1 outside of it."""
    return -1 if _rank_not_in_group(group) else _get_group_size(group)


def _get_group_size(group: ProcessGroup | None) -> int:
    return _group_or_default(group).size()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine, as launchers tell it."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context "
        "and want the code to run locally instead."
    )


def _members(group: ProcessGroup) -> dict[int, int]:
    """Numbers within a group by global numbers, in their order."""
    found = _world.pg_group_ranks.get(group)
    if found is None:
        raise ValueError(
            f"Group {group} is not registered, please create group with torch.distributed.new_group"
        )
    return found


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number within a group of a process given by its global number."""
    if group is GroupMember.WORLD:
        return global_rank
    number = _members(group).get(global_rank)
    if number is None:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return number


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The global number of a process given by its number within a group."""
    if group is GroupMember.WORLD:
        return group_rank
    numbers = list(_members(group))
    if group_rank not in range(len(numbers)):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return numbers[group_rank]


def get_process_group_ranks(group: ProcessGroup | str | None) -> list[int]:
    """The global numbers of a group's members, by their numbers within it."""
    if isinstance(group, str):
        group = _resolve_process_group(group)
    return list(_world.pg_group_ranks[_group_or_default(group)])


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Which backends a group has, as text."""
    return str(_world.pg_backend_config[_group_or_default(group)])


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of a group's backend."""
    pg = _group_or_default(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    found = _world.pg_map.get(pg)
    if found is None:
        raise ValueError(f"Process group {pg} does not exist, or was destroyed")
    return Backend(found[0])


def _get_process_group_name(pg: ProcessGroup) -> str:
    return _world.pg_names.get(pg, "None")


def _get_process_group_store(pg: ProcessGroup) -> Store:
    return _world.pg_map[pg][1]


def _get_group_size_by_name(group_name: str) -> int:
    return _resolve_process_group(group_name).size()


def _get_pg_default_device(group: ProcessGroup | None = None) -> torch.device:
    return _device_for_objects(group)


def _device_for_objects(group: ProcessGroup | None = None) -> torch.device:
    """Where pickled objects travel: the CPU where the group has a backend for it."""
    pg = _group_or_default(group)
    devices = pg._device_types if isinstance(pg, ProcessGroup) else []
    kinds = [device.type for device in devices]
    if not kinds or "cpu" in kinds:
        return torch.device("cpu")
    return torch.device(kinds[0], torch.cuda.current_device() if kinds[0] == "cuda" else None)


_get_object_coll_device = _device_for_objects


def _check_valid_timeout(timeout: Any) -> None:
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )


def is_torchelastic_launched() -> bool:
    """Whether an elastic launcher started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def supports_complex(reduceOp: Any) -> bool:
    """Whether a reduction is defined for complex numbers."""
    from torch._C._distributed_c10d import ReduceOp

    unordered = (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT)
    return reduceOp not in (*unordered, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


# ---- making the default group --------------------------------------------------------------------
def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: torch.device | int | None = None,
    _ranks: list[int] | None = None,
) -> None:
    """Makes this process part of the group of all processes, which find each other through `store`
    or through `init_method`, a URL (env:// when neither is given)."""
    global _backend
    set_debug_level_from_env()
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None and not (world_size > 0 and rank >= 0):
        raise AssertionError("world_size must be positive and rank non-negative if using store")
    chosen = Backend(backend) if backend else Backend.UNDEFINED
    timeout = default_pg_timeout if timeout is None else timeout
    _check_valid_timeout(timeout)
    if isinstance(device_id, int):
        device_id = torch.device("cuda", device_id)
    if chosen == Backend.MPI and store is None:
        # mpirun has told the processes of each other.
        world = ProcessGroupMPI.create([])
        rank, world_size = world.rank(), world.size()
        store = HashStore()
    elif store is None:
        found = rendezvous(init_method or "env://", rank, world_size, timeout=timeout)
        store, rank, world_size = next(found)
        store.set_timeout(timeout)
        # Keys of programs that use the store too stay apart from ours.
        store = PrefixStore("default_pg", store)
    pg, _ = _new_process_group_helper(
        world_size,
        rank,
        [],
        chosen,
        store,
        group_name=group_name or _next_name(()),
        backend_options=pg_options,
        timeout=timeout,
        device_id=device_id,
        group_desc="default_pg",
    )
    _update_default_pg(pg)
    _world.pg_group_ranks[pg] = {i: i for i in range(pg.size())}
    _backend = _world.pg_map[pg][0]


def _update_default_pg(pg: ProcessGroup | None) -> None:
    _world.default_pg = pg


def _next_name(ranks: Sequence[int], use_hashed_name: bool = False) -> str:
    """The name of the next group: the same in all its processes, because all make groups in the
    same order; where only the members take part, made from their numbers."""
    if use_hashed_name:
        text = "_".join(map(str, ranks))
        name = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        while name in _world.pg_names.values():
            name = hashlib.sha1((name + "_").encode(), usedforsecurity=False).hexdigest()
        return name
    name = str(_world.group_count)
    _world.group_count += 1
    return name


def _process_group_name(ranks: Sequence[int], use_hashed_name: bool) -> str:
    return _next_name(ranks, use_hashed_name)


def _new_process_group_helper(
    group_size: int,
    group_rank: int,
    global_ranks_in_group: list[int],
    backend: str,
    store: Store,
    group_name: str,
    backend_options: Any = None,
    timeout: timedelta | None = None,
    pg_tag: str | None = None,
    device_id: torch.device | None = None,
    group_desc: str | None = None,
) -> tuple[Any, Store | None]:
    """The group and its store, known under its name; (NON_GROUP_MEMBER, None) for others."""
    if group_name in _world.pg_names.values():
        raise ValueError(
            "The specified group name has already been created, please use a different group name"
        )
    if global_ranks_in_group and get_rank() not in global_ranks_in_group:
        return GroupMember.NON_GROUP_MEMBER, None
    timeout = default_pg_timeout if timeout is None else timeout
    _check_valid_timeout(timeout)
    own_store = PrefixStore(f"{group_name}/", store)
    config = BackendConfig(backend)
    members = global_ranks_in_group or list(range(group_size))
    pg = ProcessGroup(own_store, group_rank, group_size)
    opened: dict[str, Any] = {}
    for device, name in config.get_device_backend_map().items():
        if name not in opened:
            opened[name] = _open_backend(
                name,
                own_store,
                group_rank,
                group_size,
                members,
                group_name,
                backend_options,
                timeout,
            )
            if get_debug_level() == DebugLevel.DETAIL and name != Backend.FAKE:
                opened[name] = _create_process_group_wrapper(
                    opened[name], f"default_pg/{name}", own_store, group_rank, group_size, timeout
                )
        if isinstance(opened[name], ProcessGroup):
            pg = opened[name]
            break
        kind = Backend.backend_type_map.get(name, ProcessGroup.BackendType.CUSTOM)
        pg._register_backend(torch.device(device), kind, opened[name])
        if pg._default_type == ProcessGroup.BackendType.UNDEFINED:
            pg._set_default_backend(kind)
    if not opened:
        raise RuntimeError(
            "Distributed package doesn't have a backend built in for any device; name one with "
            "init_process_group(backend=...)"
        )
    pg.bound_device_id = device_id
    _remember(pg, str(backend) if backend != Backend.UNDEFINED else str(config), own_store, config)
    pg._set_group_name(group_name)
    pg._set_group_desc(group_desc or "undefined")
    _world.pg_names[pg] = group_name
    _flight_describe(group_name, members, group_desc or "")
    _register_process_group(group_name, pg)
    _tag(pg, group_name, pg_tag)
    return pg, own_store


def _create_process_group_wrapper(
    wrapped_pg: Any,
    store_prefix: str,
    store: Store,
    rank: int,
    world_size: int,
    timeout: timedelta | float = default_pg_timeout,
) -> Any:
    """A backend whose ranks agree on each operation before it begins."""
    if isinstance(wrapped_pg, ProcessGroup):
        return wrapped_pg
    if not isinstance(timeout, timedelta):
        timeout = timedelta(seconds=timeout)
    own_store = PrefixStore(store_prefix, store)
    return _ProcessGroupWrapper(wrapped_pg, own_store, rank, world_size, timeout)


def _remember(pg: ProcessGroup, name: str, store: Store, config: BackendConfig) -> None:
    _world.pg_map[pg] = (name, store)
    _world.pg_backend_config[pg] = str(config)


def _tag(pg: ProcessGroup, name: str, tag: str | None) -> None:
    """Groups made for a purpose are found again by their tag; others by their name, or by none."""
    words = [f"user:{tag}"] if tag else [f"ptd:{name}", ""]
    _world.pg_to_tag[pg] = words[0]
    for word in words:
        _world.tags_to_pg.setdefault(word, []).append(pg)


def _open_backend(
    name: str,
    store: Store,
    rank: int,
    size: int,
    members: list[int],
    group_name: str,
    backend_options: Any,
    timeout: timedelta,
) -> Any:
    if name in Backend._plugins:
        create, extended = Backend._plugins[name]
        if not extended:
            return create(store, rank, size, timeout)
        options = _DistributedBackendOptions()
        options.store, options.group_rank, options.group_size = store, rank, size
        options.timeout, options.group_id = timeout, group_name
        options.global_ranks_in_group = members
        return create(options, backend_options)
    if name == Backend.GLOO:
        if not is_backend_available(name):
            from torch._c10d import _plugin_error

            raise RuntimeError(
                f"Distributed package doesn't have Gloo built in: {_plugin_error('gloo')}"
            )
        given = isinstance(backend_options, ProcessGroupGloo._Options)
        options = backend_options if given else ProcessGroupGloo._Options(timeout)
        options.group_name, options.global_ranks_in_group = group_name, members
        return ProcessGroupGloo(store, rank, size, options)
    if name == Backend.FAKE:
        given = isinstance(backend_options, FakeProcessGroup.Options)
        options = backend_options if given else FakeProcessGroup.Options()
        options.group_name, options.global_ranks_in_group = group_name, members
        return FakeProcessGroup(rank, size, options, timeout)
    if name == Backend.NCCL:
        given = isinstance(backend_options, ProcessGroupNCCL.Options)
        options = backend_options if given else ProcessGroupNCCL.Options()
        if not given:
            options._timeout = timeout
        options.group_name, options.global_ranks_in_group = group_name, members
        return ProcessGroupNCCL(store, rank, size, options)
    if name == Backend.MPI:
        return ProcessGroupMPI(store, rank, size, members, group_name, timeout)
    if name in Backend.backend_list:
        raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
    raise ValueError(f"Unknown backend {name!r}; known are {', '.join(Backend.backend_list)}")


# ---- further groups ------------------------------------------------------------------------------
def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: torch.device | None = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some processes. All processes call it, in the same order; those outside get
    GroupMember.NON_GROUP_MEMBER. With use_local_synchronization only the members call it."""
    return _new_group_with_tag(
        ranks,
        timeout,
        backend,
        pg_options,
        None,
        use_local_synchronization,
        group_desc,
        device_id,
        sort_ranks,
    )


def _new_group_with_tag(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    backend_options: Any = None,
    pg_tag: str | None = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: torch.device | None = None,
    sort_ranks: bool = True,
) -> Any:
    default = _get_default_group()
    default_backend, default_store = _world.pg_map[default]
    world, rank = default.size(), default.rank()
    backend = Backend(backend or default_backend)
    if timeout is None:
        timeout = default_pg_timeout
    _check_valid_timeout(timeout)
    ranks = list(range(world)) if ranks is None else list(ranks)
    if sort_ranks:
        ranks.sort()
    if use_local_synchronization and rank not in ranks:
        return None
    if len(ranks) > world:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by "
            "init_process_group"
        )
    if any(one < 0 or one >= world for one in ranks):
        raise ValueError(
            "The new group's rank should be within the world_size set by init_process_group"
        )
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"The new group's ranks must differ, got {ranks}")
    name = _next_name(ranks, use_local_synchronization)
    pg, _ = _new_process_group_helper(
        len(ranks),
        ranks.index(rank) if rank in ranks else -1,
        ranks,
        backend,
        default_store,
        group_name=name,
        backend_options=backend_options,
        timeout=timeout,
        pg_tag=pg_tag,
        device_id=device_id,
        group_desc=group_desc,
    )
    if pg is not GroupMember.NON_GROUP_MEMBER:
        _world.pg_group_ranks[pg] = {one: i for i, one in enumerate(ranks)}
    return pg


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> Any:
    """Divides a group; each process gets the part it is in, or None. `split_ranks` are numbers
    within the parent."""
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = _group_or_default(parent_pg)
    flat = [one for part in split_ranks for one in part]
    if len(set(flat)) != len(flat):
        raise ValueError("the split group cannot have duplicate ranks")
    if len(flat) > parent.size() or any(not 0 <= one < parent.size() for one in flat):
        raise ValueError(
            "the split group's ranks should be within the world_size of the parent group"
        )
    mine = None
    for part in split_ranks:
        members = [get_global_rank(parent, one) for one in part]
        made = new_group(members, timeout, pg_options=pg_options, group_desc=group_desc)
        if made is not GroupMember.NON_GROUP_MEMBER:
            mine = made
    return mine


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of `group_size` neighbours each: this process's, and all."""
    size = get_world_size()
    if group_size is None:
        group_size = torch.cuda.device_count()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})"
        )
    if size % group_size != 0:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    lists = [list(range(at, at + group_size)) for at in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of the given members, without a common one: this process's, and all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    mine, groups = None, []
    owner: dict[int, Any] = {}
    for ranks in ranks_per_subgroup_list:
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        groups.append(made)
        for rank in ranks:
            if rank in owner:
                raise ValueError(
                    f"Rank {rank} has appeared in both subgroup {owner[rank]} and {ranks}"
                )
            owner[rank] = ranks
            if rank == get_rank():
                mine = made
    return mine, groups


# ---- groups by members and tag -------------------------------------------------------------------
def _find_pg_by_ranks_and_tag(tag: str, ranks: list[int]) -> ProcessGroup | None:
    if len(tag) > 0 and not tag.startswith(("ptd:", "user:")):
        tag = f"user:{tag}"
    for pg in _world.tags_to_pg.get(tag, []):
        if get_process_group_ranks(pg) == ranks:
            return pg
    return None


def _find_or_create_pg_by_ranks_and_tag(tag: str, ranks: list[int], stride: int) -> ProcessGroup:
    if len(ranks) % stride != 0:
        raise ValueError(f"group_size ({len(ranks)}) must be divisible by stride ({stride})")
    mine: list[int] | None = None
    for at in range(0, len(ranks), stride):
        part = ranks[at : at + stride]
        if get_rank() in part:
            mine = part
    if mine is None:
        raise RuntimeError(f"rank {get_rank()} is in none of the groups of {ranks}")
    found = _find_pg_by_ranks_and_tag(tag, sorted(mine))
    if found is not None:
        return found
    if tag == "":
        raise ValueError("Cannot automatically create PG with empty tag")
    return _new_group_with_tag(mine, pg_tag=tag)


def _resolve_group_name_by_ranks_and_tag(ranks: list[int], tag: str) -> str:
    found = _find_pg_by_ranks_and_tag(tag, ranks)
    if found is None:
        raise ValueError("")
    return found.group_name


def _get_group_tag(pg: ProcessGroup) -> str:
    tag = _world.pg_to_tag[pg]
    return tag[5:] if tag.startswith("user:") else tag


# ---- the end -------------------------------------------------------------------------------------
def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group; the default one, and with it all, where none is given."""
    global _backend
    if group is GroupMember.NON_GROUP_MEMBER or _rank_not_in_group(group):
        return
    pg = GroupMember.WORLD if group is None else group
    if pg is None:
        # Programs that end a group which may not exist catch this type.
        raise AssertionError("Process group cannot be None: no default group was made")
    if pg not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    if group is None or group is GroupMember.WORLD:
        # Later groups first: their members may be fewer, and end sooner.
        for one in sorted(_world.pg_names, key=lambda p: _world.pg_names[p], reverse=True):
            one.shutdown()
        _update_default_pg(None)
        for table in (
            _world.pg_map,
            _world.pg_names,
            _world.pg_group_ranks,
            _world.pg_backend_config,
            _world.tags_to_pg,
            _world.pg_to_tag,
            _world.pg_coalesce_state,
        ):
            table.clear()
        _unregister_all_process_groups()
        _forget_meshes()
        _world.group_count = 0
        _backend = Backend.UNDEFINED
        return
    pg.shutdown()
    _forget(pg)


def _forget_meshes() -> None:
    """Distributed tensors keep how they ran an operation, with the mesh; a mesh of later groups may
    be equal to one of those that are gone."""
    dispatch = sys.modules.get("torch.distributed.tensor._dispatch")
    if dispatch is not None:
        dispatch.clear_plans()


def _forget(pg: ProcessGroup) -> None:
    _unregister_process_group(pg.group_name)
    tag = _world.pg_to_tag.pop(pg, None)
    for word in {tag, ""} - {None}:
        if pg in _world.tags_to_pg.get(word, []):
            _world.tags_to_pg[word].remove(pg)
    for table in (
        _world.pg_map,
        _world.pg_names,
        _world.pg_group_ranks,
        _world.pg_backend_config,
        _world.pg_coalesce_state,
    ):
        table.pop(pg, None)


def _abort_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group's work with errors, then the group."""
    pg = _group_or_default(group)
    if pg not in _world.pg_map:
        raise ValueError("Invalid process group specified or has been destroyed.")
    pg.abort()
    destroy_process_group(group)


def _set_pg_timeout(timeout: timedelta, group: ProcessGroup | None = None) -> None:
    """How long operations of a group may take from now on."""
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    _check_valid_timeout(timeout)
    _group_or_default(group).set_timeout(timeout)


# What C++ offers and programs look for here.
from torch._C._distributed_c10d import *  # noqa: E402, F403
from torch._C._distributed_c10d import (  # noqa: E402, F401
    _create_work_from_future,
    _make_nccl_premul_sum,
    _RedOpType,
)

# The name class: what C++ calls Backend is another one.
from torch.distributed._backends import (  # noqa: E402, F401
    Backend,
    get_default_backend_for_device,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
)
from torch.distributed._collectives import *  # noqa: E402, F403
from torch.distributed._collectives import (  # noqa: E402, F401
    _coalescing_manager,
    _CoalescingManager,
)
from torch.distributed._object_collectives import *  # noqa: E402, F403
from torch.distributed._object_collectives import (  # noqa: E402, F401
    _object_to_tensor,
    _tensor_to_object,
)

reduce_op = ReduceOp  # noqa: F405
_UCC_AVAILABLE = _XCCL_AVAILABLE = False


def __getattr__(name: str) -> bool:
    # Looking for an engine loads it: only for those who ask.
    engines = {"_GLOO_AVAILABLE": "gloo", "_MPI_AVAILABLE": "mpi", "_NCCL_AVAILABLE": "nccl"}
    if name in engines:
        return is_backend_available(engines[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
