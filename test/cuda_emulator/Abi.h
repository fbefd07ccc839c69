// What a compiled program and the emulated driver share: the program keeps a pointer to this
// structure (`cresset_emulator`), the driver fills it before each thread runs. Plain C types only,
// because the program sees no header but its own.
#pragma once

struct CressetEmulatorDim {
  unsigned x, y, z;
};

struct CressetEmulatorThread {
  CressetEmulatorDim thread, block, block_dim, grid_dim;
  unsigned linear;            // index of the thread in its block
  unsigned threads;           // of a block
  unsigned char* shared;      // dynamic shared memory of the block
  unsigned char (*slots)[16]; // one value per thread, for shuffles and votes
  void (*barrier)();          // of the block
  void (*warp_barrier)(unsigned mask);
  void (*print)(const char* format, ...);
  void (*trap)();
};
