# cmake -P: one kernel source to a cubin, what ptxas said to a log beside it.
execute_process(
  COMMAND ${NVCC} -std=c++17 -I${ROOT} ${DEFINE} -cubin -arch=${ARCH} -MD -MF ${CUBIN}.d -MT ${CUBIN} -Xptxas -v --Werror all-warnings
          ${SOURCE} -o ${CUBIN}
  RESULT_VARIABLE result
  OUTPUT_VARIABLE said
  ERROR_VARIABLE said)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "nvcc ${SOURCE} for ${ARCH}:\n${said}")
endif()
file(WRITE ${LOG} "${said}")
