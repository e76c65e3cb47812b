# The libFuzzer targets. With FA_FUZZ (clang): <name>_fuzzer, all of them by `cmake --build DIR --target fuzzers`. Always: replay_<name>, which
# runs a corpus without libFuzzer.
set(FA_FUZZERS case_json expr safetensors report journal waivers exec_channel plugin attention families schedule hopper plan)
set(record_targets attention schedule hopper) # their inputs are case records, and the record mutator changes them
set(draws_targets families)                  # their inputs are draws of the generator, which have a mutator too
set(FA_FUZZERS ${FA_FUZZERS} PARENT_SCOPE) # for tests/

# What the targets share, in addition to fa-verify.
add_library(fa_fuzzer_parts STATIC
  inputs/call_arguments.c
  inputs/call_input.c
  inputs/call_mutate.c
  inputs/draws.c
  inputs/fuzzer.c
  inputs/hostile_child.c
  inputs/hostile_judged.c
  inputs/hostile_plugin.c
  inputs/judged_input.c
  inputs/mutate_case.c
  inputs/mutate_record.c
  inputs/plan_faults.c
  inputs/to_case.c)
target_link_libraries(fa_fuzzer_parts PUBLIC fa_fuzz)

# Each corpus is one archive. Its inputs are unpacked here, because their readers, libFuzzer too, need
# folders.
set(FA_CORPORA ${CMAKE_BINARY_DIR}/fuzz/corpus)
set(FA_CORPORA ${FA_CORPORA} PARENT_SCOPE) # for tests/
foreach(name ${FA_FUZZERS})
  set(archive ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name}.zip)
  # Starts with an empty folder, because a removed input would stay. The stamp comes last, so that an interrupted
  # unpacking is repeated.
  add_custom_command(OUTPUT ${FA_CORPORA}/${name}.stamp DEPENDS ${archive} VERBATIM COMMENT "Unpacking fuzz/corpus/${name}.zip"
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${FA_CORPORA}/${name}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${FA_CORPORA}/${name}
    COMMAND ${CMAKE_COMMAND} -E chdir ${FA_CORPORA}/${name} ${CMAKE_COMMAND} -E tar xf ${archive}
    COMMAND ${CMAKE_COMMAND} -E touch ${FA_CORPORA}/${name}.stamp)
  list(APPEND corpora ${FA_CORPORA}/${name}.stamp)
endforeach()
add_custom_target(corpora ALL DEPENDS ${corpora})

add_executable(corpus_tool targets/corpus_tool.c)
target_link_libraries(corpus_tool PRIVATE fa_fuzzer_parts)

foreach(name ${FA_FUZZERS})
  if(name IN_LIST record_targets)
    set(hooks_${name} inputs/record_hooks.c)
  elseif(name IN_LIST draws_targets)
    set(hooks_${name} inputs/draws_hooks.c)
  endif()
  add_executable(replay_${name} targets/replay.c targets/${name}_fuzzer.c ${hooks_${name}})
  target_link_libraries(replay_${name} PRIVATE fa_fuzzer_parts)
  target_include_directories(replay_${name} PRIVATE ${CJSON_INCLUDE})
  add_dependencies(replay_${name} corpora)
endforeach()

if(FA_FUZZ)
  # "-fsanitize=fuzzer", or the contents of $LIB_FUZZING_ENGINE under OSS-Fuzz.
  set(FA_FUZZ_ENGINE "-fsanitize=fuzzer" CACHE STRING "linker flags of the fuzzing engine")
  separate_arguments(engine NATIVE_COMMAND "${FA_FUZZ_ENGINE}")
  add_custom_target(fuzzers)
  foreach(name ${FA_FUZZERS})
    add_executable(${name}_fuzzer targets/${name}_fuzzer.c ${hooks_${name}})
    target_link_libraries(${name}_fuzzer PRIVATE fa_fuzzer_parts ${engine})
    target_include_directories(${name}_fuzzer PRIVATE ${CJSON_INCLUDE})
    set_target_properties(${name}_fuzzer PROPERTIES LINKER_LANGUAGE CXX) # libFuzzer is C++
    add_dependencies(fuzzers ${name}_fuzzer)
  endforeach()

  # fa_fuzz_flags(LIBRARY "FLAG;..." source...): appends flags to all others.
  function(fa_fuzz_flags library flags)
    set_property(SOURCE ${ARGN} TARGET_DIRECTORY ${library} APPEND PROPERTY COMPILE_OPTIONS ${flags})
  endfunction()
  # Coverage of the parsers only: cases/ also makes tensors, which the attention targets do all the time and which
  # guides nothing.
  set(coverage -fsanitize=fuzzer-no-link)
  fa_sources_of(parsers cases/expr cases/recipe cases/codec)
  fa_fuzz_flags(fa_cases "${coverage}" ${parsers} ${CMAKE_SOURCE_DIR}/cases/base/json.c ${CMAKE_SOURCE_DIR}/cases/tensors/safetensors.c
                ${CMAKE_SOURCE_DIR}/cases/tensors/safetensors_write.c)
  set(report ${CMAKE_SOURCE_DIR}/report)
  fa_fuzz_flags(fa_report "${coverage}" ${report}/journal_line.c ${report}/merge.c ${report}/read.c)
  fa_sources_of(channel gpu/contract gpu/child gpu/backends)
  fa_fuzz_flags(fa_gpu "${coverage}" ${channel})
  set(campaign ${CMAKE_CURRENT_SOURCE_DIR}/campaign)
  fa_fuzz_flags(fa_fuzz "${coverage}" ${campaign}/journal.c ${campaign}/resume.c ${campaign}/waivers.c)
  # Trusted code runs at full speed, but for kernels beside tests: the reference, and the executor, which checks every access of the
  # kernels itself. For the kernels sanitizers run when the corpus is replayed; here, their checks would be unreachable edges.
  # A build whose tests are run too (.ci/run) trusts less.
  set(FA_FUZZ_TRUSTS reference executor kernels CACHE STRING "What the fuzz targets run without sanitizers")
  fa_sources_of(reference ref/math ref/engine ref/mods ref/tiles ref/bounds ref/attention ref/compare)
  if("reference" IN_LIST FA_FUZZ_TRUSTS)
    fa_fuzz_flags(fa_ref -fno-sanitize=all ${reference})
  endif()
  fa_sources_of(executor gpu/simt)
  if("executor" IN_LIST FA_FUZZ_TRUSTS)
    fa_fuzz_flags(fa_gpu -fno-sanitize=all ${executor})
  endif()
  # Coverage of edges only in the kernels. Comparisons are of tile indices, by the million.
  fa_sources_of(kernels gpu/kernels)
  if("kernels" IN_LIST FA_FUZZ_TRUSTS)
    set(level -O2)
    if(NOT "reference" IN_LIST FA_FUZZ_TRUSTS) # beside tests: a fifth of the time to compile, and inputs take a quarter longer
      set(level -O0)
    endif()
    fa_fuzz_flags(fa_host_kernels "${level};-fno-sanitize=all" ${kernels})
  endif()
  fa_fuzz_flags(fa_host_kernels "-fsanitize-coverage=inline-8bit-counters,pc-table" ${kernels})
  fa_sources_of(planner gpu/call gpu/plan)
  fa_fuzz_flags(fa_gpu "${coverage}" ${planner})
endif()
