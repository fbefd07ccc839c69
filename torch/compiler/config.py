"""Settings of torch.compile as a whole, for those who run jobs rather than for those who write
functions."""

import sys

from torch.utils._config_module import Config, install_config_module

# The name of a job: what was learned about sizes is kept under it and used by its next run.
job_id: str | None = Config(env_name_default="TORCH_COMPILE_JOB_ID", default=None)
# Part of the keys of all caches: another tag, another cache.
cache_key_tag: str = Config(env_name_default="TORCH_COMPILE_CACHE_KEY_TAG", default="")
force_disable_caches: bool = Config(env_name_force="TORCHINDUCTOR_FORCE_DISABLE_CACHES",
                                    default=False)  # fmt: skip
# Sources (L['x'], L['x'].size()[0]) that are symbols from the start, separated by commas.
dynamic_sources: str = Config(env_name_default="TORCH_COMPILE_DYNAMIC_SOURCES", default="")
unbacked_sources: str = Config(env_name_default="TORCH_COMPILE_UNBACKED_SOURCES", default="")
# Accepted; what they ask for does not exist here.
pgo_extra_read_key: str | None = None
pgo_extra_write_key: str | None = None
strict_precompile: bool = Config(alias="torch._dynamo.config.strict_precompile")
caching_precompile: bool = Config(alias="torch._dynamo.config.caching_precompile")

install_config_module(sys.modules[__name__])
