# The CUDA part of libtorch. Its host code needs no CUDA header or library and is always compiled
# when USE_CUDA=1. Device sources (the generated ATen/cuda/programs/*.cu and every *.cuh below
# aten/src/ATen/native) are embedded as text, for the run-time compiler; where nvcc is found each is
# also compiled for CUDA_ARCH, one Ninja job per file, and the compressed machine code is embedded.
# Without USE_CUDA, files of the CUDA part are left out of TORCH_SOURCES.
if(NOT USE_CUDA)
  list(FILTER TORCH_SOURCES EXCLUDE REGEX "/c10/cuda/|/aten/src/ATen/cuda/|\\.cuda\\.cpp$")
  target_compile_definitions(cresset_flags INTERFACE CRESSET_NO_CUDA)
  return()
endif()

set(cuda_dir ${CMAKE_BINARY_DIR}/cuda)
file(MAKE_DIRECTORY ${cuda_dir})
set(cuda_flags -fatbin -std=c++20 -diag-suppress 186,2388
  -I${CMAKE_SOURCE_DIR}/aten/src/ATen/cuda/device/include
  -I${CMAKE_SOURCE_DIR}/aten/src -I${CMAKE_SOURCE_DIR} -I${CMAKE_BINARY_DIR}/gen)
foreach(arch ${CUDA_ARCH})
  list(APPEND cuda_flags -gencode arch=compute_${arch},code=sm_${arch})
endforeach()

set(nvcc_version 0)
if(CUDA_PRECOMPILE)
  find_program(CRESSET_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  if(CRESSET_NVCC)
    execute_process(COMMAND ${CRESSET_NVCC} --version OUTPUT_VARIABLE nvcc_text ERROR_QUIET)
    if(nvcc_text MATCHES "release ([0-9]+\\.[0-9]+)")
      set(nvcc_version ${CMAKE_MATCH_1})
    endif()
  endif()
endif()
if(nvcc_version VERSION_GREATER_EQUAL 12.8)
  list(APPEND cuda_flags --compress-mode=size)
endif()
if(nvcc_version)
  message(STATUS "Device programs: nvcc ${nvcc_version} for sm_${CUDA_ARCH}")
else()
  message(STATUS "Device programs: compiled at run time (nvcc not used)")
endif()

# Compiles the device program `source`, known to the library as `name`, and adds "name=file" to
# cuda_images.
function(cresset_add_program name source)
  string(REPLACE "/" "_" file ${name})
  set(image ${cuda_dir}/${file}.fatbin)
  add_custom_command(
    OUTPUT ${image}
    COMMAND ${CRESSET_NVCC} ${cuda_flags} ${ARGN} -x cu ${source} -o ${image}
            -MD -MF ${image}.d -MT ${image}
    DEPENDS ${source} DEPFILE ${image}.d
    COMMENT "Compiling device program ${name}"
    VERBATIM)
  list(APPEND cuda_images "${name}=${image}")
  list(APPEND cuda_image_files ${image})
  set(cuda_images ${cuda_images} PARENT_SCOPE)
  set(cuda_image_files ${cuda_image_files} PARENT_SCOPE)
endfunction()

set(cuda_images)
set(cuda_image_files)
set(cuda_native ${CMAKE_SOURCE_DIR}/aten/src/ATen)
file(GLOB_RECURSE cuda_programs CONFIGURE_DEPENDS RELATIVE ${cuda_native}
  ${cuda_native}/native/*.cuh)
if(nvcc_version)
  foreach(source ${GEN_CUDA_PROGRAMS})
    get_filename_component(name ${source} NAME_WE)
    set(contraction)
    if(name MATCHES "^pointwise")
      set(contraction -fmad=false) # as for the CPU's loops: see cmake/Simd.cmake
    endif()
    cresset_add_program(${name} ${source} ${contraction})
  endforeach()
  foreach(path ${cuda_programs})
    cresset_add_program(${path} ${cuda_native}/${path})
  endforeach()
endif()

# The files that device code may include.
file(GLOB_RECURSE cuda_texts CONFIGURE_DEPENDS
  ${cuda_native}/*.cuh ${cuda_native}/cuda/device/include/*.h c10/macros/*.h c10/util/*.h
  c10/cuda/DeviceError.h
  ${cuda_native}/native/*.h)
set(cuda_embedded ${cuda_dir}/cuda_embedded.cpp)
string(REPLACE ";" "\n" cuda_image_lines "${cuda_images}")
file(CONFIGURE OUTPUT ${cuda_dir}/images.txt CONTENT "@cuda_image_lines@\n" @ONLY)
add_custom_command(
  OUTPUT ${cuda_embedded} ${cuda_dir}/texts.bin ${cuda_dir}/images.bin
  COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/build/cuda_embed.py
          --root ${CMAKE_SOURCE_DIR} --images ${cuda_dir}/images.txt --out ${cuda_dir}
  DEPENDS ${cuda_texts} ${cuda_image_files} ${cuda_dir}/images.txt
          ${CMAKE_SOURCE_DIR}/tools/build/cuda_embed.py
  COMMENT "Embedding device programs"
  VERBATIM)
set_source_files_properties(${cuda_embedded} PROPERTIES
  GENERATED TRUE OBJECT_DEPENDS "${cuda_dir}/texts.bin;${cuda_dir}/images.bin")
list(APPEND TORCH_SOURCES ${cuda_embedded})
