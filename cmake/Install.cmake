# Installation. One layout serves both uses: a plain `cmake --install` puts lib/, include/ and
# share/cmake/Torch under the prefix, a wheel puts the same three folders inside the package
# torch/, where PyTorch's own wheels have them and where build scripts look.
include(CMakePackageConfigHelpers)

set(cmake_dir ${CRESSET_INSTALL_ROOT}/share/cmake/Torch)
install(TARGETS torch EXPORT TorchTargets LIBRARY DESTINATION ${CRESSET_INSTALL_ROOT}/lib)
install(EXPORT TorchTargets DESTINATION ${cmake_dir})
if(TARGET _C AND CRESSET_IN_WHEEL)
  install(TARGETS _C LIBRARY DESTINATION ${CRESSET_INSTALL_ROOT})
endif()

# Stubs and the operator table that torchgen wrote for the Python package.
if(CRESSET_IN_WHEEL)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/gen/torch/ DESTINATION ${CRESSET_INSTALL_ROOT}
    FILES_MATCHING PATTERN "*.pyi" PATTERN "*.json" PATTERN "*.py")
endif()

configure_package_config_file(cmake/TorchConfig.cmake.in ${CMAKE_BINARY_DIR}/TorchConfig.cmake
  INSTALL_DESTINATION ${cmake_dir} PATH_VARS CRESSET_INSTALL_ROOT)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TorchConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TorchConfig.cmake ${CMAKE_BINARY_DIR}/TorchConfigVersion.cmake
  DESTINATION ${cmake_dir})

set(headers FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN "*.cuh")
install(DIRECTORY c10 DESTINATION ${CRESSET_INSTALL_INCLUDE} ${headers})
install(DIRECTORY aten/src/ATen DESTINATION ${CRESSET_INSTALL_INCLUDE} ${headers})
install(DIRECTORY torch/csrc DESTINATION ${CRESSET_INSTALL_INCLUDE}/torch ${headers})
install(DIRECTORY torch/csrc/api/include/ DESTINATION ${CRESSET_INSTALL_INCLUDE} OPTIONAL
  ${headers})
install(DIRECTORY ${CMAKE_BINARY_DIR}/gen/ DESTINATION ${CRESSET_INSTALL_INCLUDE} ${headers})
