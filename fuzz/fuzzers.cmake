# The libFuzzer targets. With FA_FUZZ (clang): <name>_fuzzer, all of them by `cmake --build DIR --target fuzzers`. Always: replay_<name>, which
# runs a corpus without libFuzzer.
set(FA_FUZZERS case_json expr safetensors report journal waivers attention families schedule hopper)
set(record_targets attention families schedule hopper) # their inputs are case records, mutated as such
set(FA_FUZZERS ${FA_FUZZERS} PARENT_SCOPE) # for tests/

# What the targets share, apart from fa-verify.
add_library(fa_fuzzer_parts STATIC fuzzer.c input.c judged_input.c mutate_case.c mutate_record.c)
target_link_libraries(fa_fuzzer_parts PUBLIC fa_fuzz)

add_executable(corpus_tool corpus_tool.c)
target_link_libraries(corpus_tool PRIVATE fa_fuzzer_parts)

foreach(name ${FA_FUZZERS})
  if(name IN_LIST record_targets)
    set(hooks_${name} record_hooks.c)
  endif()
  add_executable(replay_${name} replay.c ${name}_fuzzer.c ${hooks_${name}})
  target_link_libraries(replay_${name} PRIVATE fa_fuzzer_parts)
  target_include_directories(replay_${name} PRIVATE ${CJSON_INCLUDE})
endforeach()

if(FA_FUZZ)
  # "-fsanitize=fuzzer", or what OSS-Fuzz names in $LIB_FUZZING_ENGINE.
  set(FA_FUZZ_ENGINE "-fsanitize=fuzzer" CACHE STRING "linker flags of the fuzzing engine")
  separate_arguments(engine NATIVE_COMMAND "${FA_FUZZ_ENGINE}")
  add_custom_target(fuzzers)
  foreach(name ${FA_FUZZERS})
    add_executable(${name}_fuzzer ${name}_fuzzer.c ${hooks_${name}})
    target_link_libraries(${name}_fuzzer PRIVATE fa_fuzzer_parts ${engine})
    target_include_directories(${name}_fuzzer PRIVATE ${CJSON_INCLUDE})
    set_target_properties(${name}_fuzzer PROPERTIES LINKER_LANGUAGE CXX) # libFuzzer is C++
    add_dependencies(fuzzers ${name}_fuzzer)
  endforeach()

  # fa_fuzz_flags(LIBRARY FLAGS flag... SOURCES source...): flags behind all others.
  function(fa_fuzz_flags library)
    cmake_parse_arguments(F "" "" "FLAGS;SOURCES" ${ARGN})
    get_target_property(folder ${library} SOURCE_DIR)
    list(TRANSFORM F_SOURCES PREPEND ${folder}/)
    set_property(SOURCE ${F_SOURCES} TARGET_DIRECTORY ${library} APPEND PROPERTY COMPILE_OPTIONS ${F_FLAGS})
  endfunction()
  # What the parsers are: cases/ makes tensors too, which the attention targets do all the time without interest in how.
  set(coverage -fsanitize=fuzzer-no-link)
  fa_fuzz_flags(fa_cases FLAGS ${coverage} SOURCES case_check.c case_file.c case_json.c case_keys.c case_keys_flex.c case_read.c
                case_sweep.c case_write.c expr.c expr_lex.c expr_parse.c expr_print.c expr_type.c json.c problem_check.c problem_check_flex.c safetensors.c safetensors_write.c)
  fa_fuzz_flags(fa_report FLAGS ${coverage} SOURCES report_line.c report_merge.c report_read.c)
  fa_fuzz_flags(fa_fuzz FLAGS ${coverage} SOURCES journal.c resume.c waivers.c)
  # What is trusted here runs at full speed: the reference; and the executor, which checks every access of the kernels itself.
  get_target_property(reference fa_ref SOURCES)
  fa_fuzz_flags(fa_ref FLAGS -fno-sanitize=all SOURCES ${reference})
  fa_fuzz_flags(fa_gpu FLAGS -fno-sanitize=all SOURCES simt/async.c simt/block.c simt/bulk.c simt/fiber.c simt/global.c simt/memory.c simt/mma.c simt/overlap.c simt/registers.c simt/run.c simt/warp.c simt/wgmma.c)
  # The kernels: edges alone. Comparisons are of tile indices by the million, and sanitizers look where the corpus is replayed: their
  # checks would be edges that nobody can reach.
  fa_fuzz_flags(fa_gpu FLAGS -O2 -fno-sanitize=all -fsanitize-coverage=inline-8bit-counters,pc-table
                SOURCES kernels/flash_forward_host.cpp kernels/flash_backward_host.cpp kernels/wide_host.cpp kernels/kv_host.cpp
                kernels/kv_append_host.cpp kernels/flex_forward_host.cpp kernels/flex_backward_host.cpp kernels/flex_lists_host.cpp
                kernels/hopper_forward_host.cpp kernels/hopper_backward_host.cpp kernels/hopper_backward_wide_host.cpp)
  fa_fuzz_flags(fa_gpu FLAGS ${coverage} SOURCES fa_check.c fa_check_tensors.c fa_choose.c fa_plan.c fa_plan_backward.c fa_plan_hopper.c fa_plan_wide.c)
endif()
