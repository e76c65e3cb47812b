# The part of the library that talks to the CUDA driver, and the compiled kernels (FA_CUBINS, "source|arch|file", from
# kernels/cuda.cmake) inside it. It needs the toolkit's cuda.h and no library: the driver is found at run time.
set(FA_CUDA_HINTS ENV CUDA_PATH ENV CUDA_HOME)
if(FA_NVCC)
  get_filename_component(nvcc_real ${FA_NVCC} REALPATH)
  get_filename_component(nvcc_root ${nvcc_real}/../.. ABSOLUTE)
  list(PREPEND FA_CUDA_HINTS ${nvcc_root})
endif()
find_path(FA_CUDA_INCLUDE cuda.h HINTS ${FA_CUDA_HINTS} PATHS /usr/local/cuda PATH_SUFFIXES include)
if(FA_CUDA STREQUAL "OFF" OR NOT FA_CUDA_INCLUDE)
  message(STATUS "Backend cuda: left out (${FA_NO_CUBINS})")
  set(FA_CUDA_SOURCES cuda/absent.c)
  target_sources(fa_gpu PRIVATE ${FA_CUDA_SOURCES} cuda/absent_backend.c)
  set(FA_CUDA_BACKEND OFF PARENT_SCOPE)
  return()
endif()

set(FA_CUBIN_DATA "")
set(FA_CUBIN_ROWS "")
set(cubin_files)
set(number 0)
foreach(entry ${FA_CUBINS})
  string(REPLACE "|" ";" entry ${entry})
  list(GET entry 0 source)
  list(GET entry 1 arch)
  list(GET entry 2 file)
  list(APPEND cubin_files ${file})
  string(APPEND FA_CUBIN_DATA
    "__asm__(\".section .rodata\\n.balign 64\\nfa_cubin_${number}:\\n.incbin \\\"${file}\\\"\\n\"\n"
    "        \"fa_cubin_${number}_end:\\n.byte 0\\n.previous\\n\");\n"
    "extern const char fa_cubin_${number}[] __attribute__((visibility(\"hidden\")));\n"
    "extern const char fa_cubin_${number}_end[] __attribute__((visibility(\"hidden\")));\n")
  string(APPEND FA_CUBIN_ROWS "    {\"${source}\", \"${arch}\", fa_cubin_${number}, fa_cubin_${number}_end},\n")
  math(EXPR number "${number} + 1")
endforeach()
# The kernels' sources, for NVRTC.
file(GLOB kernel_sources CONFIGURE_DEPENDS kernels/*.cu kernels/*.cuh kernels/*.h)
list(FILTER kernel_sources EXCLUDE REGEX "_host\\.")
set(FA_SOURCE_DATA "")
set(FA_SOURCE_ROWS "")
set(number 0)
foreach(file ${kernel_sources})
  get_filename_component(name ${file} NAME)
  string(APPEND FA_SOURCE_DATA
    "__asm__(\".section .rodata\\nfa_source_${number}:\\n.incbin \\\"${file}\\\"\\n.byte 0\\n.previous\\n\");\n"
    "extern const char fa_source_${number}[] __attribute__((visibility(\"hidden\")));\n")
  string(APPEND FA_SOURCE_ROWS "    {\"gpu/kernels/${name}\", fa_source_${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()
configure_file(cuda/sources.c.in ${CMAKE_BINARY_DIR}/gpu/sources.c @ONLY)
set_source_files_properties(${CMAKE_BINARY_DIR}/gpu/sources.c PROPERTIES OBJECT_DEPENDS "${kernel_sources}")
configure_file(cuda/cubins.c.in ${CMAKE_BINARY_DIR}/gpu/cubins.c @ONLY)
set_source_files_properties(${CMAKE_BINARY_DIR}/gpu/cubins.c PROPERTIES OBJECT_DEPENDS "${cubin_files}")
# What gpu/fa.h needs of it, and what only the harness does.
set(FA_CUDA_SOURCES cuda/cache.c cuda/driver.c cuda/launch.c cuda/launch_flex.c cuda/launch_hopper.c cuda/launch_kv.c cuda/module.c cuda/module_flex.c cuda/nvrtc.c cuda/rtc.c
    ${CMAKE_BINARY_DIR}/gpu/cubins.c ${CMAKE_BINARY_DIR}/gpu/sources.c)
target_sources(fa_gpu PRIVATE ${FA_CUDA_SOURCES} cuda/backend.c cuda/backend_flex.c cuda/bench.c cuda/context.c cuda/issue.c cuda/memory.c cuda/virtual.c)
target_include_directories(fa_gpu SYSTEM PUBLIC ${FA_CUDA_INCLUDE})
target_link_libraries(fa_gpu PUBLIC ${CMAKE_DL_LIBS})
set(FA_CUDA_BACKEND ON PARENT_SCOPE)
