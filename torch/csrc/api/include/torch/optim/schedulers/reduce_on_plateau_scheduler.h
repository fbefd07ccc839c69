// Where programs look for this scheduler.
#pragma once
#include <torch/optim/schedulers/lr_scheduler.h>
