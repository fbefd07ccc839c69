# Kernel files *.simd.cpp are compiled once per instruction set, each into the namespace named by
# CRESSET_ISA; the library picks a set at run time. Sets SIMD_OBJECTS from SIMD_SOURCES and
# GEN_SIMD_SOURCES.
set(SIMD_OBJECTS)
set(simd_all ${SIMD_SOURCES} ${GEN_SIMD_SOURCES})
if(NOT simd_all)
  return()
endif()

# Fused products leave an imaginary residue in a * conj(a) and move the points of a grid: loops of
# pointwise operators and of grids, whose maths asks for fma where it wants it, are compiled without
# contraction; so are kernels that are written at run time from the same functors, and those of
# quantized tensors, whose ties would round the other way.
foreach(source ${simd_all})
  if(source MATCHES "[Pp]ointwise|interpolate/Grid|activation/Activation|loss/Loss|/quantized/")
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
  endif()
endforeach()

# The set this machine will run, for builds that are used here and now.
set(native_isa base)
if(CRESSET_X86 AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
  if(cpu_flags MATCHES " avx512f .*" AND cpu_flags MATCHES " avx512vl ")
    set(native_isa avx512)
  elseif(cpu_flags MATCHES " avx2 " AND cpu_flags MATCHES " fma ")
    set(native_isa avx2)
  endif()
endif()

function(cresset_add_isa isa)
  add_library(torch_${isa} OBJECT ${simd_all})
  cresset_configure_target(torch_${isa})
  target_compile_definitions(torch_${isa} PRIVATE CRESSET_ISA=${isa} CRESSET_KERNEL_TU=)
  target_compile_options(torch_${isa} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${ARGN}>)
  if(NOT OPTIMIZE_ALL_ISA AND NOT isa STREQUAL native_isa)
    target_compile_options(torch_${isa} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  endif()
endfunction()

cresset_add_isa(base)
list(APPEND SIMD_OBJECTS $<TARGET_OBJECTS:torch_base>)
if(CRESSET_X86)
  cresset_add_isa(avx2 -mavx2 -mfma -mf16c)
  cresset_add_isa(avx512 -march=x86-64-v4 -mfma -mf16c -mprefer-vector-width=512)
  list(APPEND SIMD_OBJECTS $<TARGET_OBJECTS:torch_avx2> $<TARGET_OBJECTS:torch_avx512>)
endif()
