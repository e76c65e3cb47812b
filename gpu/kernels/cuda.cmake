# Compiles the kernels for the device where nvcc is found; needs no GPU. Every cubin's registers, shared memory and spills are
# gathered in <build>/gpu/resources.txt, and a spill or a ptxas warning fails the build (resources.cmake).
set(FA_CUDA AUTO CACHE STRING "Compile the kernels with nvcc: AUTO (if it is found), ON, OFF")
set_property(CACHE FA_CUDA PROPERTY STRINGS AUTO ON OFF)
set(FA_CUDA_ARCHITECTURES 80 90a CACHE STRING "Architectures to compile for ahead of time, and to judge on; none: all kernels at run time, and no judge on a GPU")
set(FA_CUDA_PART 0/1 CACHE STRING "I/N: of these, every N-th source's kernels from the I-th on, the others at run time; for builds that take turns")
if(NOT FA_CUDA_PART MATCHES "^([0-9]+)/([1-9][0-9]*)$" OR NOT CMAKE_MATCH_1 LESS CMAKE_MATCH_2)
  message(FATAL_ERROR "FA_CUDA_PART is I/N with I less than N, not ${FA_CUDA_PART}")
endif()
set(part ${CMAKE_MATCH_1})
set(parts ${CMAKE_MATCH_2})

if(FA_CUDA STREQUAL "OFF")
  message(STATUS "Device kernels: off (FA_CUDA=OFF)")
  set(FA_NO_CUBINS "it was configured with FA_CUDA=OFF")
  return()
endif()
if(FA_SANITIZE AND FA_CUDA STREQUAL "AUTO")
  message(STATUS "Device kernels: left to the builds without sanitizers, which make the same ones")
  set(FA_NO_CUBINS "it is a build with sanitizers, and without FA_CUDA=ON")
  return()
endif()
if("${FA_CUDA_ARCHITECTURES}" STREQUAL "")
  message(STATUS "Device kernels: all at run time (FA_CUDA_ARCHITECTURES is empty)")
  set(FA_NO_CUBINS "it was configured without architectures")
  return()
endif()
find_program(FA_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(NOT FA_NVCC)
  if(FA_CUDA STREQUAL "AUTO")
    message(STATUS "Device kernels: no nvcc found, so only the host backend is built")
    set(FA_NO_CUBINS "no nvcc was found when it was configured")
    return()
  endif()
  message(FATAL_ERROR "FA_CUDA=ON but nvcc was not found; put it on the PATH or set CUDA_HOME")
endif()
list(JOIN FA_CUDA_ARCHITECTURES ", sm_" architectures)
message(STATUS "Device kernels: ${FA_NVCC}, sm_${architectures}, part ${FA_CUDA_PART}")

set(FA_CUBIN_DIR ${CMAKE_BINARY_DIR}/gpu/cubin)
file(MAKE_DIRECTORY ${FA_CUBIN_DIR})
set(FA_PTXAS_LOGS)
set(FA_CUBINS) # "source|arch|file" of each, for whoever puts them into the library
set(place 0)
foreach(entry ${FA_KERNEL_CUBINS})
  math(EXPR in_part "${place} % ${parts}")
  math(EXPR place "${place} + 1")
  if(NOT in_part EQUAL part)
    continue()
  endif()
  string(REGEX MATCH "^(.*)\\|(.*)\\|(.*)$" entry ${entry})
  set(source ${CMAKE_MATCH_1})
  set(kernel ${CMAKE_MATCH_2})
  set(define ${CMAKE_MATCH_3})
  string(REPLACE / _ name ${kernel})
  foreach(arch ${FA_CUDA_ARCHITECTURES})
    if(kernel MATCHES "^hopper" AND NOT arch STREQUAL "90a")
      continue()
    endif()
    set(cubin ${FA_CUBIN_DIR}/${name}.sm_${arch}.cubin)
    set(log ${cubin}.log)
    add_custom_command(
      OUTPUT ${cubin} ${log}
      COMMAND ${CMAKE_COMMAND} -DNVCC=${FA_NVCC} -DARCH=sm_${arch} -DROOT=${CMAKE_SOURCE_DIR}
              -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/kernels/${source}.cu -DDEFINE=${define} -DCUBIN=${cubin} -DLOG=${log}
              -P ${CMAKE_CURRENT_SOURCE_DIR}/kernels/compile.cmake
      DEPENDS kernels/${source}.cu kernels/compile.cmake
      DEPFILE ${cubin}.d
      COMMENT "nvcc ${kernel} for sm_${arch}"
      VERBATIM)
    list(APPEND FA_PTXAS_LOGS ${log})
    list(APPEND FA_CUBINS "${kernel}|${arch}|${cubin}")
  endforeach()
endforeach()
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/gpu/resources.txt
  COMMAND ${CMAKE_COMMAND} "-DLOGS=${FA_PTXAS_LOGS}" -DOUT=${CMAKE_BINARY_DIR}/gpu/resources.txt
          -P ${CMAKE_CURRENT_SOURCE_DIR}/kernels/resources.cmake
  DEPENDS ${FA_PTXAS_LOGS} kernels/resources.cmake
  COMMENT "Registers, shared memory and spills of the device kernels"
  VERBATIM)
add_custom_target(fa_cubins ALL DEPENDS ${CMAKE_BINARY_DIR}/gpu/resources.txt)
