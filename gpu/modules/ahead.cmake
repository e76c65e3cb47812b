# Kernels that the build compiles one by one, as the run-time compiler does (ahead.h): for the architectures and the part of
# cuda.cmake, where NVRTC is found. What was compiled is kept beside them, so that only changed kernels are compiled again.
if(NOT DEFINED FA_CUBIN_DATA) # there is no CUDA here
  return()
endif()
option(FA_CUDA_AHEAD "Compile kernels one by one that no cubin has; off: at run time, for builds whose kernels change often" ON)
set(FA_AHEAD_DATA "")
set(FA_AHEAD_ROWS "")
set(files)
find_library(FA_NVRTC_LIBRARY nvrtc HINTS ${FA_CUDA_HINTS} PATHS /usr/local/cuda PATH_SUFFIXES lib64 lib)
if(FA_CUDA_AHEAD AND FA_CUBINS AND FA_NVRTC_LIBRARY AND NOT CMAKE_CROSSCOMPILING)
  configure_file(modules/ahead.c.in ${CMAKE_BINARY_DIR}/gpu/ahead_none.c @ONLY)
  add_executable(fa_ahead modules/ahead_build.c ${CMAKE_SOURCE_DIR}/cases/threads/processors.c ${CMAKE_BINARY_DIR}/gpu/ahead_none.c
                 $<TARGET_OBJECTS:fa_attention_objects>)
  set_target_properties(fa_ahead PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/gpu LINKER_LANGUAGE C)
  target_link_libraries(fa_ahead PRIVATE fa_flags Threads::Threads ${CMAKE_DL_LIBS} m)
  foreach(arch ${FA_CUDA_ARCHITECTURES})
    set(file ${CMAKE_BINARY_DIR}/gpu/ahead.sm_${arch})
    add_custom_command(
      OUTPUT ${file}
      COMMAND ${CMAKE_COMMAND} -E env FA_LIBNVRTC=${FA_NVRTC_LIBRARY} FA_CACHE_DIR=${CMAKE_BINARY_DIR}/gpu/ahead FA_CACHE_MEGABYTES=1000
              FA_NVRTC=auto $<TARGET_FILE:fa_ahead> ${file} ${arch} ${FA_CUDA_PART}
      DEPENDS fa_ahead
      COMMENT "NVRTC for sm_${arch}: kernels one by one"
      VERBATIM)
    list(APPEND files ${file})
    string(APPEND FA_AHEAD_DATA
      "__asm__(\".section .rodata\\n.balign 64\\nfa_ahead_${arch}:\\n.incbin \\\"${file}\\\"\\n\"\n"
      "        \"fa_ahead_${arch}_end:\\n.byte 0\\n.previous\\n\");\n"
      "extern const char fa_ahead_${arch}[] __attribute__((visibility(\"hidden\")));\n"
      "extern const char fa_ahead_${arch}_end[] __attribute__((visibility(\"hidden\")));\n")
    string(APPEND FA_AHEAD_ROWS "    {\"${arch}\", fa_ahead_${arch}, fa_ahead_${arch}_end},\n")
  endforeach()
endif()
configure_file(modules/ahead.c.in ${CMAKE_BINARY_DIR}/gpu/ahead.c @ONLY)
set_source_files_properties(${CMAKE_BINARY_DIR}/gpu/ahead.c PROPERTIES OBJECT_DEPENDS "${files}")
add_custom_target(fa_ahead_files DEPENDS ${files}) # once, before three targets need them
foreach(library fa_gpu fa_attention fa_attention_shared)
  target_sources(${library} PRIVATE ${CMAKE_BINARY_DIR}/gpu/ahead.c)
  add_dependencies(${library} fa_ahead_files)
endforeach()
set_target_properties(fa_attention fa_attention_shared PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden) # as the objects
