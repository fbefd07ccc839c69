"""DistributedDataParallel: a model that several processes train, each on its own part of the data.
All start from the parameters of rank 0; during the backward pass gradients are averaged over the
ranks (torch._distributed.reducer), so that all take the same steps."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]

_BROADCAST_BYTES = 250 << 20


def _find_tensors(value: object) -> list[torch.Tensor]:
    """The tensors in nested lists, dictionaries and dataclasses."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in _find_tensors(one)]
    if isinstance(value, dict):
        return [tensor for one in value.values() for tensor in _find_tensors(one)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
        return [tensor for one in fields for tensor in _find_tensors(one)]
    return []


class DistributedDataParallel(Module):
    """Averages the gradients of a module over the processes of a group."""

    def __init__(
        self,
        module: Module,
        device_ids: list[int | torch.device] | None = None,
        output_device: int | torch.device | None = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: object = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: object = None,
        param_to_hook_all_reduce: object = None,
        mixed_precision: object = None,
        device_mesh: object = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        for name, value in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
            ("mixed_precision", mixed_precision),
        ):
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel is not implemented with {name}")
        self.process_group = _group_of(process_group, device_mesh)
        self.module = module
        self.dim = dim
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = False
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = self._named_parameters()
        if not any(p.requires_grad for _, p in named):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        self._set_devices(device_ids, output_device, [p for _, p in named])
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * (1 << 20))
        self._default_bucket_cap = bucket_cap_mb is None
        self._hook_registered = False
        self._sparse_hook = None
        if init_sync:
            self._check_and_send_states([p for _, p in named])
        self._make_reducer(named)
        if static_graph:
            self._set_static_graph()

    # ---- making
    def _named_parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        return [
            (name, p)
            for name, p in self.module.named_parameters()
            if name not in self.parameters_to_ignore
        ]

    def _buffers_to_send(self) -> list[torch.Tensor]:
        return [
            buffer
            for name, buffer in self.module.named_buffers()
            if name not in self.parameters_to_ignore
        ]

    def _set_devices(
        self, device_ids: list | None, output_device: object, parameters: list[torch.Tensor]
    ) -> None:
        kinds = {p.device.type for p in parameters}
        if len(kinds) != 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but "
                f"input module parameters locate in {kinds}."
            )
        self.is_multi_device_module = len({p.device for p in parameters}) > 1
        self.device_type = next(iter(kinds))
        if device_ids and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if (self.device_type == "cpu" or self.is_multi_device_module) and (
            device_ids or output_device
        ):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                f"single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                f"{device_ids}, output_device {output_device}, and module parameters "
                f"{ {p.device for p in parameters} }."
            )
        self.device_ids = [torch.device("cuda", d) if isinstance(d, int) else torch.device(d)
                           for d in device_ids] if device_ids else None  # fmt: skip
        self.output_device = (
            output_device
            if output_device is not None
            else (self.device_ids[0] if self.device_ids else None)
        )
        self.device = parameters[0].device

    def _check_and_send_states(self, parameters: list[torch.Tensor]) -> None:
        from torch._distributed.reducer import (
            broadcast_coalesced,
            verify_params_across_processes,
        )

        verify_params_across_processes(self.process_group, parameters)
        states = [*parameters, *self._buffers_to_send()]
        broadcast_coalesced(self.process_group, states, _BROADCAST_BYTES, 0)

    def _make_reducer(self, named: list[tuple[str, torch.nn.Parameter]]) -> None:
        from torch._distributed.reducer import (
            FIRST_BUCKET_BYTES,
            Reducer,
            compute_bucket_assignment_by_size,
        )

        self._exchanges = True
        sparse = self._sparse_parameters()
        trained = [(name, p) for name, p in named if p.requires_grad and p not in sparse]
        self._watch_sparse([p for _, p in named if p in sparse and p.requires_grad])
        if not trained:
            self.reducer = None
            return
        first = FIRST_BUCKET_BYTES if self._default_bucket_cap else self.bucket_bytes_cap
        limits = [first, self.bucket_bytes_cap]
        parameters = [p for _, p in trained]
        # Gradients come in the order opposite to that of use.
        buckets, sizes = compute_bucket_assignment_by_size(
            parameters[::-1], limits, tensor_indices=list(range(len(parameters)))[::-1]
        )
        self.reducer = Reducer(
            parameters,
            buckets,
            sizes,
            self.process_group,
            bucket_bytes_cap=self.bucket_bytes_cap,
            find_unused_parameters=self.find_unused_parameters,
            gradient_as_bucket_view=self.gradient_as_bucket_view,
            param_to_name_mapping={i: name for i, (name, _) in enumerate(trained)},
            first_bucket_bytes_cap=first,
        )

    def _sparse_parameters(self) -> set[torch.nn.Parameter]:
        """The parameters of layers that were asked for sparse gradients."""
        layers = (torch.nn.Embedding, torch.nn.EmbeddingBag)
        found = (m for m in self.module.modules() if isinstance(m, layers) and m.sparse)
        return {layer.weight for layer in found}

    def _watch_sparse(self, parameters: list[torch.nn.Parameter]) -> None:
        if not parameters:
            return
        from torch.distributed.algorithms._uneven import average_sparse

        average = average_sparse(self, lambda: self._sparse_hook)
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(average)

    def _set_static_graph(self) -> None:
        """Says that every pass uses the same parameters in the same way."""
        if self.static_graph:
            return
        self.static_graph = True
        if self.reducer is not None:
            self.reducer._set_static_graph()

    # ---- running
    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes of what is called inside add to gradients and exchange nothing."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _sync_buffers(self, takes_part: bool = True) -> None:
        from torch._distributed.reducer import broadcast_coalesced

        buffers = self._buffers_to_send()
        joins = self._is_joining()  # then all do the same in every iteration
        if not buffers or not self.broadcast_buffers:
            return
        if not joins and not self.require_forward_param_sync:
            return
        root = 0
        if joins:
            from torch.distributed.algorithms._uneven import highest_rank

            root = highest_rank(self, takes_part)
        broadcast_coalesced(self.process_group, buffers, _BROADCAST_BYTES, root)

    # ---- ranks with fewer inputs
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> object:
        """A block around a training loop whose number of inputs differs between ranks. Gradients
        are divided by all ranks, or by those that have inputs left."""
        from torch.distributed.algorithms.join import Join

        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: object) -> object:
        """What a rank without inputs does in the iterations of the others."""
        from torch.distributed.algorithms._uneven import DataParallelJoinHook

        return DataParallelJoinHook(self, bool(kwargs.get("divide_by_initial_world_size", True)))

    @property
    def join_device(self) -> torch.device:
        """The device of the collectives that count ranks."""
        return self.device

    @property
    def join_process_group(self) -> object:
        """The group of the collectives that count ranks."""
        return self.process_group

    _join_config: Any = None
    _divides_by_all = True

    def _is_joining(self) -> bool:
        return self._join_config is not None and self._join_config.enable

    def _leave_join(self) -> None:
        self._join_config = None
        if self.reducer is not None:
            self.reducer._set_world_size(self.process_group.size())

    def _tell_join(self) -> None:
        """Says in a join block that this rank has an input, and counts those that have."""
        from torch.distributed.algorithms.join import Join

        work = Join.notify_join_context(self)
        if work is not None and not self._divides_by_all and self.reducer is not None:
            work.wait()
            self.reducer._set_world_size(int(work.result()[0].item()))

    def _placed(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        if not self.device_ids:
            return args, kwargs
        from torch.nn.parallel.scatter_gather import scatter_kwargs

        moved, named = scatter_kwargs(args, kwargs, self.device_ids, self.dim)
        return moved[0], named[0]

    def _before_forward(self, inputs: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Makes the exchange of gradients ready; arguments as the module gets them."""
        if self._is_joining():
            self._tell_join()
        if torch.is_grad_enabled() and self.reducer is not None:
            self.reducer.prepare_for_forward()
            if self.reducer._rebuild_buckets():
                self._has_rebuilt_buckets = True
        self._sync_buffers()
        if self._is_joining():
            from torch.distributed.algorithms._uneven import exchanges_gradients

            exchanges_gradients(self, torch.is_grad_enabled() and self.require_backward_grad_sync)
        return self._placed(inputs, kwargs)

    def _after_forward(self, output: object) -> object:
        self._exchanges = torch.is_grad_enabled() and self.require_backward_grad_sync
        if self.reducer is None:
            return output
        if self._exchanges:
            self.require_forward_param_sync = True
            wanted = self.find_unused_parameters and not self.static_graph
            self.reducer.prepare_for_backward(_find_tensors(output) if wanted else [])
        else:
            self.reducer._skip_next()
            self.require_forward_param_sync = False
        return output

    def forward(self, *inputs: object, **kwargs: object) -> object:
        """The module's own, with the exchange of gradients made ready."""
        inputs, kwargs = self._before_forward(inputs, kwargs)
        return self._after_forward(self.module(*inputs, **kwargs))

    def train(self, mode: bool = True) -> DistributedDataParallel:
        """Sets the module's mode."""
        super().train(mode)
        return self

    # ---- hooks
    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Gives the exchange of each bucket of gradients to hook(state, bucket), which returns a
        future of the averaged gradients."""
        from torch._distributed.reducer import register_comm_hook

        _check_comm_hook(hook)
        if self.reducer is not None:
            register_comm_hook(self.reducer, state, hook)
        self._sparse_hook = lambda bucket: hook(state, bucket)
        self._hook_registered = True

    def _register_builtin_comm_hook(self, comm_hook_type: object) -> None:
        from torch._distributed.reducer import register_builtin_comm_hook

        register_builtin_comm_hook(self.reducer, comm_hook_type)

    def _get_ddp_logging_data(self) -> dict[str, object]:
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "backend_name": self.process_group.name(),
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": self.find_unused_parameters,
            "gradient_as_bucket_view": self.gradient_as_bucket_view,
            "broadcast_buffers": self.broadcast_buffers,
            "static_graph": self.static_graph,
            "iteration": self.reducer.forward_passes if self.reducer is not None else 0,
            "has_rebuilt_buckets": getattr(self, "_has_rebuilt_buckets", False),
        }

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, names: list[str]) -> None:
        module._ddp_params_and_buffers_to_ignore = names

    # ---- copies
    def __getstate__(self) -> dict[str, object]:
        from torch.distributed import distributed_c10d

        if self.process_group is not distributed_c10d._get_default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default "
                "process group. That is, when you have called init_process_group and have not "
                "passed process_group argument to DDP constructor"
            )
        state = dict(self.__dict__)
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self.process_group = _group_of(None, None)
        self._make_reducer(self._named_parameters())
        if self.static_graph and self.reducer is not None:
            self.reducer._set_static_graph()


def _dump_DDP_relevant_env_vars() -> None:
    """Prints the variables of the environment that concern several processes."""
    names = ("RANK LOCAL_RANK WORLD_SIZE MASTER_PORT MASTER_ADDR CUDA_VISIBLE_DEVICES "
             "GLOO_SOCKET_IFNAME GLOO_DEVICE_TRANSPORT NCCL_SOCKET_IFNAME NCCL_DEBUG "
             "NCCL_DEBUG_SUBSYS NCCL_IB_DISABLE NCCL_P2P_DISABLE NCCL_P2P_LEVEL "
             "NCCL_SHM_DISABLE OMP_NUM_THREADS MKL_NUM_THREADS").split()  # fmt: skip
    print("\n".join(f"env:{name}={os.environ.get(name, 'N/A')}" for name in names))


def _check_comm_hook(hook: object) -> None:
    """Refuses a hook whose annotations say that it expects or returns something else."""
    from torch._distributed.reducer import GradBucket

    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    try:
        signature = inspect.signature(hook, eval_str=True)
    except (NameError, TypeError, ValueError):  # names of type checkers alone; calls made in C
        return
    bucket = signature.parameters.get("bucket")
    if bucket is not None and bucket.annotation not in (bucket.empty, GradBucket, Any):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    futures = (torch.futures.Future[torch.Tensor], torch.futures.Future)
    if signature.return_annotation not in (signature.empty, *futures, Any):
        raise ValueError(
            "Communication hook: return annotation should be torch.futures.Future[torch.Tensor]."
        )


def _group_of(process_group: object, device_mesh: object) -> object:
    from torch.distributed import distributed_c10d

    if process_group is not None and device_mesh is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if device_mesh is not None:
        if device_mesh.ndim != 1:
            raise RuntimeError(
                f"Only 1D device mesh is supported, but got {device_mesh.ndim} dimensions"
            )
        return device_mesh.get_group(0)
    return distributed_c10d._get_default_group() if process_group is None else process_group
