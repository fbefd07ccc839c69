# CMake package Torch: find_package(Torch REQUIRED), then link ${TORCH_LIBRARIES}, or the targets
# torch (tensors, operators, autograd), torch_nn (torch::nn, torch::optim, archives) and torch_c10d
# (stores, groups of processes; not one of TORCH_LIBRARIES). All paths follow from where this file
# lies, so that a wheel, an installation and a built source tree use the same one:
# <prefix>/share/cmake/Torch/TorchConfig.cmake beside <prefix>/include and <prefix>/lib.
get_filename_component(TORCH_INSTALL_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(TORCH_INCLUDE_DIRS
  "${TORCH_INSTALL_PREFIX}/include" "${TORCH_INSTALL_PREFIX}/include/torch/csrc/api/include")
set(TORCH_LIBRARY "${TORCH_INSTALL_PREFIX}/lib/libtorch.so")
set(TORCH_LIBRARIES torch_nn torch)
set(TORCH_CXX_FLAGS "")

foreach(path ${TORCH_LIBRARY} "${TORCH_INSTALL_PREFIX}/include/torch/torch.h")
  if(NOT EXISTS ${path})
    set(Torch_FOUND FALSE)
    set(Torch_NOT_FOUND_MESSAGE "Torch: ${path} is missing")
    return()
  endif()
endforeach()

include(CMakeFindDependencyMacro)
find_dependency(Threads)

foreach(library torch torch_nn torch_c10d)
  if(NOT TARGET ${library})
    add_library(${library} SHARED IMPORTED)
    set_target_properties(${library} PROPERTIES
      IMPORTED_LOCATION "${TORCH_INSTALL_PREFIX}/lib/lib${library}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}"
      INTERFACE_COMPILE_FEATURES cxx_std_17
      INTERFACE_LINK_LIBRARIES Threads::Threads)
  endif()
endforeach()
set_property(TARGET torch_nn APPEND PROPERTY INTERFACE_LINK_LIBRARIES torch)
set_property(TARGET torch_c10d APPEND PROPERTY INTERFACE_LINK_LIBRARIES torch)
set(Torch_FOUND TRUE)
set(TORCH_FOUND TRUE)
