# Tests that take turns where lists are tried in shares (support/turn.sh): each runs on one day in four. Without shares, as by `ctest` alone,
# all run. What is here is for the sake of time; that every turn comes is the test `turns_taken`.
set(FA_TURNS 4)

# Without sanitizers: what tries the tests themselves and has to compile much first, other compilers, other people's packages, and packing.
# About equal sums; day 0 has less, because .ci/run compiles the kernels with sanitizers then.
set(FA_TURN_0 flex_nvcc host_kernels nvrtc_compiles)
set(FA_TURN_1 barriers case_files_host2 simulated simulated_amax simulated_four_bits simulated_quantized simulated_scaled_o wheel)
set(FA_TURN_2 case_files_hopper deb explain_campaign mutants)
set(FA_TURN_3 findings_reproduce python_adapters python_package)
# Of these a day tries half as much as of others: each item is compiled.
set(FA_HALF_SHARES mutants)

# With sanitizers every test takes turns, but for the small ones that read what a stranger has written.
set(FA_SANITIZED_DAILY case_errors case_file case_hostile case_lines case_memory exec exec_adopt exec_memory child_process fuzz fuzz_hostile_plugin
    fuzz_case_json fuzz_exec_channel fuzz_expr fuzz_journal fuzz_plugin fuzz_report fuzz_safetensors fuzz_waivers plugin plugin_call report_merge
    safetensors serve_command worker)
# The kernels' own, on the day on which they have sanitizers.
set(FA_SANITIZED_TURN_0 case_files_host case_files_host2 case_files_amax case_files_crossattn case_files_flex case_files_hopper case_files_hopper_cache case_files_kernels case_files_kvcache_large
    case_files_kvcache_mods case_files_mla case_files_quantized case_files_sinks descriptor_forms flex_backward flex_exact flex_forward flex_lists flex_planted
    fuzz_attention fuzz_families fuzz_families_planted fuzz_hopper fuzz_schedule hopper_backward host_backend host_backward host_flash
    kernel_work kv_kernels visible_nan wide)
# The longest of the others by what they cost, dealt out like cards; then all that are not named.
set(FA_SANITIZED_DEALT serve probe sample_exact untrusted_rules campaign ref_recorded cli cuda_backend exec2 ref_mixed ref_f32 require shrink
    explain_hypotheses cuda_cli ref_serving laws device_judge recorded two_judges cubin ref_mla waivers ci_runs case_files ref_values report_maps
    random_profiles)

# Those that take longest of what runs every day: they are started first, so that none is left alone at the end.
set(FA_LONG case_files case_files_flex case_files_host cuda_backend device_judge exec exec2 fuzz_attention fuzz_families hopper_backward lanes probe
    random_profiles ref_mixed ref_recorded serve untrusted_rules wall)

# fa_turn_of(OUT NAME): the number of its turn, or nothing for one that runs every day.
function(fa_turn_of out name)
  set(${out} "" PARENT_SCOPE)
  set(prefix FA_TURN)
  if(FA_SANITIZE)
    set(prefix FA_SANITIZED_TURN)
    if(name IN_LIST FA_SANITIZED_DAILY)
      return()
    endif()
  endif()
  foreach(number RANGE 3)
    if(name IN_LIST ${prefix}_${number})
      set(${out} ${number} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(FA_SANITIZE)
    list(FIND FA_SANITIZED_DEALT ${name} place)
    if(place LESS 0)
      get_property(place GLOBAL PROPERTY FA_TESTS_DEALT)
      math(EXPR next "${place} + 1")
      set_property(GLOBAL PROPERTY FA_TESTS_DEALT ${next})
    endif()
    math(EXPR number "1 + ${place} % 3") # not on the kernels' day
    set(${out} ${number} PARENT_SCOPE)
  endif()
endfunction()
set_property(GLOBAL PROPERTY FA_TESTS_DEALT 0)

# fa_add_test(NAME command...): a command without semicolons that is run from the top of the tree: exit 0 passed, 77 skipped. Where it takes
# turns, its lists are tried in shares that are larger by as much, but for sanitizers, with which lists are the longest part.
function(fa_add_test name)
  fa_turn_of(number ${name})
  set(turn "")
  if(NOT number STREQUAL "")
    set(by ${FA_TURNS})
    if(name IN_LIST FA_HALF_SHARES)
      math(EXPR by "${by} / 2")
    endif()
    if(FA_SANITIZE)
      set(by 1)
    endif()
    set(turn bash ${CMAKE_SOURCE_DIR}/tests/support/turn.sh ${number}/${FA_TURNS} ${by})
  endif()
  set(command ${ARGN})
  list(GET command 0 program)
  if(TARGET ${program})
    list(REMOVE_AT command 0)
    list(PREPEND command $<TARGET_FILE:${program}>) # what add_test does by itself for its first word alone
  endif()
  add_test(NAME ${name} COMMAND ${turn} ${command} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
  if(name IN_LIST FA_LONG OR (FA_SANITIZE AND name IN_LIST FA_SANITIZED_DEALT))
    set_tests_properties(${name} PROPERTIES COST 20)
  endif()
endfunction()
