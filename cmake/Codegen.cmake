# Code generation. torchgen names its outputs at configure time (so that the sources can be listed
# without knowing the operators here) and writes them at build time. It leaves files whose content
# is unchanged alone, and Ninja then recompiles only what really changed.
set(GEN_TORCH_SOURCES)
set(GEN_SIMD_SOURCES)
set(GEN_PYTHON_SOURCES)
set(GEN_HEADERS)
set(GEN_CUDA_PROGRAMS)

if(NOT EXISTS ${CMAKE_SOURCE_DIR}/torchgen/gen.py)
  return()
endif()

execute_process(COMMAND ${Python_EXECUTABLE} -c "import yaml"
                RESULT_VARIABLE no_yaml OUTPUT_QUIET ERROR_QUIET)
if(no_yaml)
  message(FATAL_ERROR "torchgen needs PyYAML: run '${Python_EXECUTABLE} -m pip install pyyaml'.")
endif()

set(gen_dir ${CMAKE_BINARY_DIR}/gen)
set(gen_yaml
  ${CMAKE_SOURCE_DIR}/aten/src/ATen/native/native_functions.yaml
  ${CMAKE_SOURCE_DIR}/tools/autograd/derivatives.yaml)
set(gen_command ${Python_EXECUTABLE} -m torchgen.gen
  --yaml aten/src/ATen/native/native_functions.yaml
  --derivatives tools/autograd/derivatives.yaml
  --out ${gen_dir})
if(NOT USE_CUDA)
  list(APPEND gen_command --without-cuda)
endif()

file(GLOB_RECURSE gen_inputs CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/torchgen/*.py ${CMAKE_SOURCE_DIR}/torchgen/*.txt
  ${CMAKE_SOURCE_DIR}/aten/src/ATen/native/*.yaml ${CMAKE_SOURCE_DIR}/tools/autograd/*.yaml)

# The list of outputs may change with any input, hence a new configuration, which costs a second
# or two.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${gen_inputs})
file(MAKE_DIRECTORY ${gen_dir})
execute_process(
  COMMAND ${gen_command} --outputs-cmake ${CMAKE_BINARY_DIR}/gen_outputs.cmake
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} RESULT_VARIABLE gen_failed ERROR_VARIABLE gen_message)
if(gen_failed)
  message(FATAL_ERROR "torchgen could not read the operator list:\n${gen_message}")
endif()
include(${CMAKE_BINARY_DIR}/gen_outputs.cmake)

set(gen_link)
if(CRESSET_INPLACE AND BUILD_PYTHON)
  set(gen_link COMMAND ${Python_EXECUTABLE} tools/build/link_generated.py ${gen_dir}/torch torch)
endif()
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/gen.stamp
  BYPRODUCTS ${GEN_TORCH_SOURCES} ${GEN_SIMD_SOURCES} ${GEN_PYTHON_SOURCES} ${GEN_HEADERS}
             ${GEN_CUDA_PROGRAMS}
  COMMAND ${gen_command}
  ${gen_link}
  COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/gen.stamp
  DEPENDS ${gen_inputs}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
  COMMENT "Generating operators from native_functions.yaml"
  VERBATIM)
add_custom_target(cresset_codegen DEPENDS ${CMAKE_BINARY_DIR}/gen.stamp)

set_source_files_properties(
  ${GEN_TORCH_SOURCES} ${GEN_SIMD_SOURCES} ${GEN_PYTHON_SOURCES} ${GEN_HEADERS}
  ${GEN_CUDA_PROGRAMS}
  PROPERTIES GENERATED TRUE)
# Our own files do not see the generated Tensor methods, or each new operator would recompile all of
# them; the files that define those methods are the exception.
set(gen_methods ${GEN_TORCH_SOURCES})
list(FILTER gen_methods INCLUDE REGEX "/TensorMethodsDef_")
set_property(SOURCE ${gen_methods} APPEND PROPERTY COMPILE_OPTIONS -UCRESSET_KERNEL_TU)
set_property(SOURCE ${gen_methods} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
# The functions that programs call are defined without the library's inline ones in sight.
set(gen_functions ${GEN_TORCH_SOURCES})
list(FILTER gen_functions INCLUDE REGEX "/FunctionsDef_")
set_property(SOURCE ${gen_functions} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
# g++ 12 takes an empty std::optional for an uninitialised one in the unboxing code.
set(gen_host ${GEN_TORCH_SOURCES} ${GEN_PYTHON_SOURCES})
set_property(SOURCE ${gen_host} APPEND PROPERTY COMPILE_OPTIONS -Wno-maybe-uninitialized)
if(NOT DEBUG)
  # Long straight-line code run once per call: -O1 halves its compile time, and nothing
  # measurable is lost. One call that ends another is a jump with -O2 only.
  list(REMOVE_ITEM gen_host ${gen_functions})
  set_property(SOURCE ${gen_host} APPEND PROPERTY COMPILE_OPTIONS -O1)
endif()
