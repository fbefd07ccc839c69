# Installation. One layout serves both uses: a plain `cmake --install` puts lib/, include/ and
# share/cmake/Torch under the prefix, a wheel puts the same three folders inside the package
# torch/, where PyTorch's own wheels have them and where build scripts look.
include(CMakePackageConfigHelpers)

set(cmake_dir ${CRESSET_DEST}share/cmake/Torch)
set(include_dir ${CRESSET_DEST}include)
install(TARGETS torch ${front_libraries} ${distributed_libraries}
  LIBRARY DESTINATION ${CRESSET_DEST}lib)
if(TARGET _C AND CRESSET_IN_WHEEL)
  install(TARGETS _C _c10d LIBRARY DESTINATION torch)
endif()

# Stubs and the operator table that torchgen wrote for the Python package.
if(CRESSET_IN_WHEEL)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/gen/torch/ DESTINATION torch
    FILES_MATCHING PATTERN "*.pyi" PATTERN "*.json" PATTERN "*.py")
endif()

write_basic_package_version_file(${CMAKE_BINARY_DIR}/TorchConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES cmake/TorchConfig.cmake ${CMAKE_BINARY_DIR}/TorchConfigVersion.cmake
  DESTINATION ${cmake_dir})

# A wheel has them in its metadata.
if(NOT CRESSET_IN_WHEEL)
  install(FILES LICENSE THIRD_PARTY.md DESTINATION share/licenses/Torch)
endif()

set(headers FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.inc" PATTERN "*.cuh")
install(DIRECTORY c10 DESTINATION ${include_dir} ${headers})
install(DIRECTORY aten/src/ATen DESTINATION ${include_dir} ${headers})
install(DIRECTORY torch/csrc torch/headeronly DESTINATION ${include_dir}/torch ${headers})
install(DIRECTORY torch/csrc/api/include/ DESTINATION ${include_dir} OPTIONAL
  ${headers})
# What programs see instead of the library's own view is in gen/public. The other is left out and
# not overwritten: of two files of the same second CMake would keep the first.
install(DIRECTORY ${CMAKE_BINARY_DIR}/gen/ DESTINATION ${include_dir} ${headers}
  PATTERN "public" EXCLUDE PATTERN "ops" EXCLUDE PATTERN "generated" EXCLUDE
  PATTERN "Functions.h" EXCLUDE PATTERN "Operators.h" EXCLUDE)
install(DIRECTORY ${CMAKE_BINARY_DIR}/gen/public/ DESTINATION ${include_dir} ${headers})
file(GLOB top_headers CONFIGURE_DEPENDS torch/*.h)
install(FILES ${top_headers} DESTINATION ${include_dir}/torch)

# A built tree offers the same layout by links.
if(CRESSET_INPLACE)
  add_custom_target(cresset_headers ALL
    COMMAND ${Python_EXECUTABLE} tools/build/link_headers.py . ${CMAKE_BINARY_DIR}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} VERBATIM)
  if(TARGET cresset_codegen)
    add_dependencies(cresset_headers cresset_codegen)
  endif()
endif()
