# Processes that work together: libtorch_c10d.so (stores, work, backends), the extension
# torch/_c10d that Python imports with torch.distributed, and one plugin library per engine, built
# where the engine's headers are installed and loaded when a program asks for it. Nothing here is
# loaded by `import torch`.

file(GLOB C10D_SOURCES CONFIGURE_DEPENDS torch/csrc/distributed/c10d/*.cpp)
add_library(torch_c10d SHARED ${C10D_SOURCES})
cresset_configure_target(torch_c10d)
target_link_libraries(torch_c10d PUBLIC torch PRIVATE ${CMAKE_DL_LIBS})

set(distributed_libraries torch_c10d)

# Gloo: Debian's libgloo-dev. Its own CMake package names libraries that need not be installed.
find_path(GLOO_INCLUDE_DIR gloo/rendezvous/context.h)
find_library(GLOO_LIBRARY gloo)
if(GLOO_INCLUDE_DIR AND GLOO_LIBRARY)
  file(GLOB GLOO_SOURCES CONFIGURE_DEPENDS torch/csrc/distributed/gloo/*.cpp)
  add_library(torch_gloo SHARED ${GLOO_SOURCES})
  cresset_configure_target(torch_gloo)
  target_include_directories(torch_gloo SYSTEM PRIVATE ${GLOO_INCLUDE_DIR})
  target_link_libraries(torch_gloo PRIVATE torch_c10d ${GLOO_LIBRARY})
  list(APPEND distributed_libraries torch_gloo)
else()
  message(STATUS "Gloo was not found (libgloo-dev): torch.distributed is built without it")
endif()

# MPI: Open MPI, Debian's libopenmpi-dev. Its headers are C.
find_path(MPI_INCLUDE_DIR mpi.h PATH_SUFFIXES openmpi HINTS
  /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include)
find_library(MPI_LIBRARY mpi)
if(MPI_INCLUDE_DIR AND MPI_LIBRARY)
  file(GLOB MPI_SOURCES CONFIGURE_DEPENDS torch/csrc/distributed/mpi/*.cpp)
  add_library(torch_mpi SHARED ${MPI_SOURCES})
  cresset_configure_target(torch_mpi)
  target_compile_definitions(torch_mpi PRIVATE OMPI_SKIP_MPICXX)
  target_include_directories(torch_mpi SYSTEM PRIVATE ${MPI_INCLUDE_DIR})
  target_link_libraries(torch_mpi PRIVATE torch_c10d ${MPI_LIBRARY})
  list(APPEND distributed_libraries torch_mpi)
else()
  message(STATUS "MPI was not found (libopenmpi-dev): torch.distributed is built without it")
endif()

# NCCL: needs nothing to be built; its library is looked for when a program asks for it.
if(USE_CUDA)
  file(GLOB NCCL_SOURCES CONFIGURE_DEPENDS torch/csrc/distributed/nccl/*.cpp)
  add_library(torch_nccl SHARED ${NCCL_SOURCES})
  cresset_configure_target(torch_nccl)
  target_link_libraries(torch_nccl PRIVATE torch_c10d ${CMAKE_DL_LIBS})
  list(APPEND distributed_libraries torch_nccl)
endif()

foreach(library ${distributed_libraries})
  set_target_properties(${library} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
  cresset_place_in_tree(${library} torch/lib)
endforeach()

if(BUILD_PYTHON)
  file(GLOB C10D_PYTHON_SOURCES CONFIGURE_DEPENDS torch/csrc/python/distributed/c10d/*.cpp)
  # The helpers over CPython are compiled in: those of torch._C are its own.
  Python_add_library(_c10d MODULE WITH_SOABI ${C10D_PYTHON_SOURCES}
    torch/csrc/python/runtime/support.cpp)
  cresset_configure_target(_c10d)
  target_compile_options(_c10d PRIVATE -Wno-missing-field-initializers -Wno-cast-function-type)
  target_link_libraries(_c10d PRIVATE torch_c10d)
  set_target_properties(_c10d PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/torch
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/lib:$ORIGIN/../lib")
  cresset_place_in_tree(_c10d torch)
endif()
