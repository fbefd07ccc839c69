// Threads of a block as fibers: cheap to start by the thousand, and switched only where the kernel
// waits (a barrier, a shuffle), so that a run repeats exactly. The order in which the threads of a
// block run can be reversed (CRESSET_EMULATOR_ORDER=reverse): a kernel whose result changes with it
// misses a barrier.
#pragma once

#include "Abi.h"

namespace emulator {

struct Launch {
  void (*call)(void**);
  void** args;
  unsigned grid[3], block[3];
  unsigned shared_bytes;
};

enum class Outcome { kDone, kFault, kDeadlock, kTrap };

// Runs every block in turn. `why` receives a sentence for anything but kDone.
Outcome run_blocks(const Launch& launch, CressetEmulatorThread*& program_state, const char** why);

} // namespace emulator
