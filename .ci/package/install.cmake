# What `cmake --install BUILD --prefix P` puts where. Two components, and both when none is named:
#   program   fa-verify with its case files, examples, pages and completions, and what building a plugin needs
#   library   libfa_attention with its headers
# python/ has a third, which is installed only by its name. Nothing that is installed holds an absolute path: the program looks beside
# itself, and the package files work out P from where they lie.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(fa_package ${CMAKE_CURRENT_LIST_DIR})
set(fa_made ${CMAKE_BINARY_DIR}/package)
set(fa_headers ${CMAKE_INSTALL_INCLUDEDIR}/fa-verify) # headers keep their folders below it: #include "gpu/fa.h"
set(fa_shared ${CMAKE_INSTALL_DATADIR}/fa-verify)
set(fa_package_files ${CMAKE_INSTALL_LIBDIR}/cmake/fa-verify)

# ---- program ----
install(TARGETS fa-verify EXPORT fa-verify-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
file(GLOB fa_case_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cases/*.json)
set(fa_schema ${CMAKE_SOURCE_DIR}/cases/schema.json)
list(REMOVE_ITEM fa_case_files ${fa_schema})
install(FILES ${fa_case_files} DESTINATION ${fa_shared}/cases COMPONENT program)
install(FILES ${fa_schema} DESTINATION ${fa_shared} COMPONENT program)
install(FILES ${CMAKE_SOURCE_DIR}/tests/exec/example_plugin.c ${fa_package}/examples/CMakeLists.txt DESTINATION ${fa_shared}/examples COMPONENT program)
install(FILES ${CMAKE_SOURCE_DIR}/tests/exec/child.py ${CMAKE_SOURCE_DIR}/tests/exec/child2.py ${CMAKE_SOURCE_DIR}/tests/exec/torch_sdpa.py
        DESTINATION ${fa_shared}/examples COMPONENT program)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program FILES_MATCHING PATTERN *.md)
# OPTIONAL: the program prints these (fuzz/manual/), and a build of the program alone has not asked for them
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program OPTIONAL)
foreach(shell bash-completion zsh fish)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/share/${shell} DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT program OPTIONAL)
endforeach()

add_library(fa_plugin INTERFACE) # gpu/plugin.h for CMake projects: fa::plugin
install(TARGETS fa_plugin EXPORT fa-verify-program COMPONENT program INCLUDES DESTINATION ${fa_headers})
install(FILES ${CMAKE_SOURCE_DIR}/gpu/plugin.h DESTINATION ${fa_headers}/gpu COMPONENT program)

# ---- library ----
install(TARGETS fa_attention fa_attention_shared EXPORT fa-verify-library COMPONENT library
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${fa_headers})
install(FILES ${CMAKE_SOURCE_DIR}/gpu/fa.h DESTINATION ${fa_headers}/gpu COMPONENT library)
# Where the others stood before there was cases/base: programs that include them by that path go on compiling.
foreach(header dtype status)
  install(FILES ${CMAKE_SOURCE_DIR}/cases/base/${header}.h DESTINATION ${fa_headers}/cases/base COMPONENT library)
  file(WRITE ${fa_made}/moved/${header}.h "#include \"cases/base/${header}.h\"\n")
  install(FILES ${fa_made}/moved/${header}.h DESTINATION ${fa_headers}/cases COMPONENT library)
endforeach()

# ---- for those who build with them ----
set_target_properties(fa-verify PROPERTIES EXPORT_NAME verify)
set_target_properties(fa_plugin PROPERTIES EXPORT_NAME plugin)
set_target_properties(fa_attention PROPERTIES EXPORT_NAME attention_static)
set_target_properties(fa_attention_shared PROPERTIES EXPORT_NAME attention)
file(RELATIVE_PATH FA_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_package_config_file(${fa_package}/fa-verify-config.cmake.in ${fa_made}/fa-verify-config.cmake INSTALL_DESTINATION ${fa_package_files}
                              NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${fa_made}/fa-verify-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(${fa_package}/fa-verify.pc.in ${fa_made}/program/fa-verify.pc @ONLY)
configure_file(${fa_package}/fa_attention.pc.in ${fa_made}/library/fa_attention.pc @ONLY)
foreach(component program library)
  install(EXPORT fa-verify-${component} NAMESPACE fa:: DESTINATION ${fa_package_files} COMPONENT ${component})
  install(FILES ${fa_made}/fa-verify-config.cmake ${fa_made}/fa-verify-config-version.cmake DESTINATION ${fa_package_files} COMPONENT ${component})
  install(DIRECTORY ${fa_made}/${component}/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
endforeach()
