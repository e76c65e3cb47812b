# `cpack -G DEB` in a build folder: one package of program and library, from what install.cmake installs. What Debian wants otherwise
# than a prefix has it (compressed pages, its copyright file and changelog) is done by deb_tree.cmake in the packaged tree.
set(FA_MAINTAINER "fa-verify authors <fa-verify@packages.invalid>" CACHE STRING "Whom a package names as its maintainer: NAME <ADDRESS>")
set(CPACK_PACKAGE_NAME fa-verify)
set(CPACK_PACKAGE_CONTACT ${FA_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "judges attention kernels for GPUs, element by element")
set(CPACK_PACKAGE_DESCRIPTION
"Decides whether a GPU attention kernel computes what it should. Every element
of its outputs and gradients is compared with a float64 result, under an error
bound that is derived for that element from the kernel's arithmetic.
.
The kernel may be a shared library, a program in any language, or one of those
that come with it, which also run without a GPU. The package holds the case
files, examples, and libfa_attention, the same kernels for C programs.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # needs dpkg-shlibdeps (dpkg-dev): cpack says so where it is missing
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS bubblewrap) # what --untrusted stands on
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gcc | clang, pkgconf, python3") # to build the example plugin and run the example children
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/triggers) # the linker's cache is told of libfa_attention
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/deb_tree.cmake)
# For that script: cpack hands on what begins with CPACK_.
set(CPACK_FA_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_FA_OPENBLAS ${OPENBLAS_LIBRARY})
include(CPack)
