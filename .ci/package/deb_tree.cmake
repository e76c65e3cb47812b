# Run by cpack (deb.cmake) between installing into a folder and packing that folder: what Debian's policy asks of the files in it.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})
set(doc ${root}/share/doc/${CPACK_PACKAGE_NAME})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The licences: ours, and that of the library that is linked into the program, as its own package words it.
file(READ ${CPACK_FA_LICENSE} license)
if(CPACK_FA_OPENBLAS MATCHES "[.]a$")
  file(GLOB theirs /usr/share/doc/libopenblas-dev/copyright /usr/share/doc/libopenblas*-dev/copyright)
  list(GET theirs 0 theirs)
  file(READ ${theirs} theirs)
  string(APPEND license "\nThe program contains OpenBLAS, whose copyright file says:\n\n${theirs}")
endif()
file(WRITE ${doc}/copyright "${license}")
file(REMOVE ${doc}/LICENSE)

# A changelog in Debian's form; the one that people read is among the documents. The date is SOURCE_DATE_EPOCH's if that is set.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${doc}/changelog
     "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * Version ${CPACK_PACKAGE_VERSION}.\n\n"
     " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
file(GLOB pages ${root}/share/man/man*/*.[1-9])
run(gzip -9nf ${doc}/changelog ${pages})

# Debian's zsh looks for a package's completions in another folder.
if(EXISTS ${root}/share/zsh/site-functions)
  file(RENAME ${root}/share/zsh/site-functions ${root}/share/zsh/vendor-completions)
endif()

# cpack strips programs and shared libraries alone.
file(GLOB archives ${root}/lib/*.a ${root}/lib/*/*.a)
foreach(archive ${archives})
  run(strip --strip-debug --enable-deterministic-archives ${archive})
endforeach()
