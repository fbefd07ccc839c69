"""Settings of symbolic shapes and of graphs. What is set is kept; a setting whose machinery is
not there changes nothing."""

import sys

from torch.utils._config_module import install_config_module

# Sizes that are equal at the first call get one symbol.
use_duck_shape = True
# Checks that guards say what the program meant.
translation_validation = False
translation_validation_timeout = 600000
translation_validation_no_bisect = False
# What is logged about guards.
extended_debug_guard_added: str | None = None
extended_debug_create_symbol: str | None = None
extended_debug_cpp = False
extended_debug_current_loc = True
print_specializations = False
inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY = False
symbol_guard_limit_before_specialize: int | None = None
validate_shape_env_version_key = False
skip_dtype_check_in_meta_registrations = False
backed_size_oblivious = False
aggressive_guard_free_semantics = 0
check_shape_env_recorded_events = False
# Whether code generation keeps comments with the lines of the user's program.
enrich_profiler_metadata = False

no_data_dependent_graph_break = False
meta_nonzero_assume_all_nonzero = False

install_config_module(sys.modules[__name__])
