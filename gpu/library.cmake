# gpu/fa.h for C programs: libfa_attention, static and shared, with what the interface needs and nothing else: no BLAS, no JSON, no
# C++ library, no host executor, and the CUDA driver and NVRTC only where they are found at run time.
fa_sources_of(library_sources gpu/call gpu/plan gpu/expr gpu/kernels)
add_library(fa_attention_objects OBJECT
  ${library_sources}
  ${CMAKE_SOURCE_DIR}/cases/base/atomic_file.c
  ${CMAKE_SOURCE_DIR}/cases/base/dtype.c
  ${CMAKE_SOURCE_DIR}/cases/base/sha256.c
  ${CMAKE_SOURCE_DIR}/cases/base/status.c
  ${CMAKE_SOURCE_DIR}/cases/expr/ast.c
  ${CMAKE_SOURCE_DIR}/cases/expr/capture.c
  ${CMAKE_SOURCE_DIR}/cases/expr/lex.c
  ${CMAKE_SOURCE_DIR}/cases/expr/parse.c
  ${CMAKE_SOURCE_DIR}/cases/expr/type.c
  ${FA_CUDA_SOURCES})
target_compile_definitions(fa_attention_objects PRIVATE FA_TABLES_ONLY)
target_compile_options(fa_attention_objects PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti>)
target_link_libraries(fa_attention_objects PRIVATE fa_flags)
if(FA_CUDA_INCLUDE)
  target_include_directories(fa_attention_objects SYSTEM PRIVATE ${FA_CUDA_INCLUDE})
endif()
set_target_properties(fa_attention_objects PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden
                      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

add_library(fa_attention STATIC $<TARGET_OBJECTS:fa_attention_objects>)
add_library(fa_attention_shared SHARED $<TARGET_OBJECTS:fa_attention_objects>)
set_target_properties(fa_attention fa_attention_shared PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME fa_attention)
set_target_properties(fa_attention_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_link_options(fa_attention_shared PRIVATE -Wl,--as-needed) # CMake names libstdc++, which nothing here uses
foreach(library fa_attention fa_attention_shared)
  target_link_libraries(${library} PRIVATE $<BUILD_INTERFACE:fa_flags> Threads::Threads ${CMAKE_DL_LIBS} m)
endforeach()
