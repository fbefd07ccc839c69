# Build options. Each may be given as -DNAME=... or, as PyTorch's users are used to, as an
# environment variable of the same name at configure time; the command line wins.

function(cresset_option name help default)
  if(NOT DEFINED ${name} AND DEFINED ENV{${name}} AND NOT "$ENV{${name}}" STREQUAL "")
    set(default "$ENV{${name}}")
  endif()
  set(${name} "${default}" CACHE STRING "${help}")
endfunction()

if(DEFINED SKBUILD)
  set(CRESSET_IN_WHEEL ON)
else()
  set(CRESSET_IN_WHEEL OFF)
endif()

# Where the installed files go below the prefix: see cmake/Install.cmake.
if(CRESSET_IN_WHEEL)
  set(CRESSET_DEST torch/)
  set(default_inplace OFF)
  set(default_test 0)
else()
  set(CRESSET_DEST "")
  set(default_inplace ON)
  set(default_test 1)
endif()

cresset_option(DEBUG "1: -O0 with debug information and assertions" 0)
cresset_option(USE_CUDA "1: build the CUDA part, which needs neither CUDA headers nor a GPU" 1)
cresset_option(CUDA_PRECOMPILE "1: compile device programs with nvcc where it is found" 1)
cresset_option(CUDA_ARCH "Compute capabilities to compile device programs for, e.g. 80;90" 90)
cresset_option(BUILD_TEST "1: build the C++ tests (needs GoogleTest)" ${default_test})
cresset_option(BUILD_CPP_API "1: build libtorch_nn, the C++ front end; the C++ tests need it" 1)
cresset_option(BUILD_PYTHON "1: build the Python extension torch._C" 1)
cresset_option(OPTIMIZE_ALL_ISA
               "0: leave kernels for instruction sets below this machine's own unoptimised" 1)
cresset_option(MAX_JOBS "At most this many compile jobs at a time; empty: Ninja decides" "")
cresset_option(SANITIZE "Comma-separated sanitizers for every C++ file, e.g. address,undefined" "")
option(CRESSET_INPLACE "Link the built libraries into the source tree, so that it can be imported"
       ${default_inplace})

if(DEBUG)
  set(CMAKE_BUILD_TYPE Debug CACHE STRING "" FORCE)
elseif(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

if(MAX_JOBS)
  set_property(GLOBAL PROPERTY JOB_POOLS compile=${MAX_JOBS} link=${MAX_JOBS})
  set(CMAKE_JOB_POOL_COMPILE compile)
  set(CMAKE_JOB_POOL_LINK link)
endif()

# Compiler cache, when present. It must be chosen before targets exist.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# A cache keys objects by the text that the compiler sees; headers compiled beforehand differ from
# folder to folder, so each build uses one or the other.
if(DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND NOT "$ENV{CCACHE_DISABLE}")
  set(default_pch 0)
else()
  set(default_pch 1)
endif()
cresset_option(PRECOMPILE_HEADERS "1: parse the headers that every file includes once"
               ${default_pch})
