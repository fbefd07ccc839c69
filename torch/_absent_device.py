"""What torch.xpu, torch.mtia and torch.mps answer in a build without such devices: there are none.
Questions are answered with 0, False or nothing, and whatever needs a device raises."""


def fill(namespace, title, extra_errors=()) -> None:
    """Puts the functions of an absent device kind into a module's namespace."""
    module = namespace["__name__"]

    def missing(*args, **kwargs):
        raise AssertionError(f"Torch not compiled with {title} enabled")

    def answer(value, doc):
        def answered(*args, **kwargs):
            return value() if callable(value) else value

        answered.__doc__ = doc
        return answered

    table = {
        "is_available": answer(False, "Whether there is such a device: no."),
        "is_initialized": answer(False, "Whether the device is in use: no."),
        "is_bf16_supported": answer(False, "Whether it computes in bfloat16: no."),
        "is_tf32_supported": answer(False, "Whether it computes in TF32: no."),
        "device_count": answer(0, "How many such devices there are: none."),
        "empty_cache": answer(None, "Gives cached memory back; there is none."),
        "reset_peak_memory_stats": answer(None, "Forgets peaks; there are none."),
        "reset_accumulated_memory_stats": answer(None, "Forgets totals; there are none."),
        "manual_seed": answer(None, "Sets the seed, for devices to come."),
        "manual_seed_all": answer(None, "Sets all seeds, for devices to come."),
        "memory_stats": answer(dict, "Statistics of memory: none."),
        "get_rng_state_all": answer(list, "The states of all generators: none."),
        "set_rng_state_all": answer(None, "Sets the states of all generators."),
        "get_arch_list": answer(list, "What kernels were built for: nothing."),
    }
    for name in (
        "max_memory_allocated max_memory_reserved memory_allocated memory_reserved"
    ).split():
        table[name] = answer(0, "Bytes in use: 0.")
    needs = (
        "current_device current_stream default_stream get_device_capability get_device_name "
        "get_device_properties get_rng_state init initial_seed mem_get_info seed seed_all "
        "set_device set_rng_state set_stream stream synchronize can_device_access_peer"
    )
    for name in [*needs.split(), *extra_errors]:
        table[name] = missing
    for name, function in table.items():
        namespace.setdefault(name, function)
    for name in table:
        value = namespace[name]
        if value is not missing and value.__name__ == "answered":
            value.__name__ = value.__qualname__ = name
            value.__module__ = module
    for name in ("Event", "Stream"):
        namespace.setdefault(name, _absent_class(module, name))
    namespace.setdefault("device", _device_context(missing))
    namespace["__all__"] = sorted({*table, "Event", "Stream", "device"})


def _absent_class(module, name):
    def refuse(self, *args, **kwargs):
        raise RuntimeError(f"Tried to instantiate dummy base class {name}")

    methods = {"__init__": refuse, "__module__": module, "__doc__": f"{name} of an absent device."}
    for (
        method
    ) in "elapsed_time query record record_event synchronize wait wait_event wait_stream".split():
        methods[method] = refuse
    return type(name, (), methods)


def _device_context(missing):
    class device:
        """Makes a device current for a block; None and negative numbers leave it."""

        def __init__(self, device) -> None:
            if device is not None and device != -1:
                missing()

        def __enter__(self) -> None:
            self.previous = -1

        def __exit__(self, type, value, traceback) -> bool:
            return False

    return device
