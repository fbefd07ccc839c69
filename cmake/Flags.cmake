# Compile and link flags, in one place. The choices are measured: -O2 for kernels and host code
# (-O3 costs a third more compile time on the loops and gains nothing with explicit vectors), -O1
# for generated host code, no debug information unless DEBUG=1, hidden visibility, wrapping signed
# arithmetic because tensors promise it.
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g -DCRESSET_DEBUG")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(cresset_flags INTERFACE)
target_compile_options(cresset_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
  -fvisibility=hidden -fvisibility-inlines-hidden -fno-math-errno -fno-trapping-math -fwrapv
  -fno-semantic-interposition -fno-plt
  -Wall -Wextra -Wno-unused-parameter -Wno-psabi -Werror=return-type>)
# The x86-64 copies of the kernels (cmake/Simd.cmake) exist.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set(CRESSET_X86 ON)
  target_compile_definitions(cresset_flags INTERFACE CRESSET_HAVE_X86_ISA)
endif()
target_include_directories(cresset_flags INTERFACE
  ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/aten/src ${CMAKE_SOURCE_DIR}/torch/csrc/api/include
  ${CMAKE_BINARY_DIR}/gen)
# Where the toolchain links the C++ runtime from an archive, its symbols stay inside: the facets of
# another copy (cuDNN brings the system's) would otherwise be looked up by this one's numbers.
target_link_options(cresset_flags INTERFACE
  -Wl,-Bsymbolic-functions -Wl,--exclude-libs,ALL
  $<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>>:-Wl,--no-undefined>)

foreach(linker mold lld)
  check_linker_flag(CXX "-fuse-ld=${linker}" CRESSET_HAVE_${linker})
  if(CRESSET_HAVE_${linker})
    target_link_options(cresset_flags INTERFACE -fuse-ld=${linker})
    break()
  endif()
endforeach()

if(SANITIZE)
  # -g1 gives the reports their lines; the rest keeps a report from being a mere warning.
  target_compile_options(cresset_flags INTERFACE
    -fsanitize=${SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(cresset_flags INTERFACE -fsanitize=${SANITIZE})
endif()

# Gives `target` our flags and makes it wait for the generated headers.
function(cresset_configure_target target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:cresset_flags>)
  if(TARGET cresset_codegen)
    add_dependencies(${target} cresset_codegen)
  endif()
endfunction()

# Parses the named headers, and those of the standard library that nearly every file needs, once
# for all files of `target`: 0.4 to 0.9 s of each file's compile time where no compiler cache is at
# hand. Files that ask for the other view of Tensor parse theirs themselves.
function(cresset_precompile target)
  if(PRECOMPILE_HEADERS AND NOT DEBUG)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "^${CMAKE_SOURCE_DIR}/.*\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_BINARY_DIR}/")
    foreach(source ${sources})
      file(STRINGS ${source} other_view REGEX "^#undef CRESSET_KERNEL_TU" LIMIT_COUNT 1)
      if(other_view)
        set_property(SOURCE ${source} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
    target_precompile_headers(${target} PRIVATE ${ARGN} <ATen/core/Tensor.h> <algorithm>
      <functional> <memory> <mutex> <optional> <string> <unordered_map> <vector>)
  endif()
endfunction()

# With CRESSET_INPLACE, links the built file of `target` into `folder` of the source tree
# (git-ignored).
function(cresset_place_in_tree target folder)
  if(CRESSET_INPLACE)
    set(link ${CMAKE_SOURCE_DIR}/${folder}/$<TARGET_FILE_NAME:${target}>)
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_SOURCE_DIR}/${folder}
      COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:${target}> ${link}
      VERBATIM)
  endif()
endfunction()
