// Where programs look for AdamW.
#pragma once
#include <torch/optim/adam.h>
