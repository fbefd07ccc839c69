// The interface that hooks of every accelerator implement; it knows core types only and lies there.
#pragma once
#include <c10/core/impl/AcceleratorHooks.h>
