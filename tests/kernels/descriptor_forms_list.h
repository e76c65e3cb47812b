/* The forms of descriptor_forms.cuh: the configurations of the kernels whose products differ. */
#ifndef FA_TESTS_KERNELS_DESCRIPTOR_FORMS_LIST_H
#define FA_TESTS_KERNELS_DESCRIPTOR_FORMS_LIST_H

/* FA_FORM(name, form) for each. */
#define FA_FORWARD_FORMS(D, BN)                                                                              \
  FA_FORM(forward_scores_##D##_##BN,                                                                         \
          fa::form_forward_scores<fa::hopper_forward_config<fa::bf16, D, fa::plain, 2, BN, false, false>>)   \
  FA_FORM(forward_values_##D##_##BN,                                                                         \
          fa::form_forward_values<fa::hopper_forward_config<fa::bf16, D, fa::plain, 2, BN, false, false>>)
#define FA_BACKWARD_FORMS(D, FIRST, REST)                                                                    \
  FA_FORM(backward_scores_##D##_0,                                                                           \
          fa::form_backward_gemm_s_dp<fa::hopper_backward_config<fa::bf16, D, 64>, 0>)                       \
  FA_FORM(backward_scores_##D##_1,                                                                           \
          fa::form_backward_gemm_s_dp<fa::hopper_backward_config<fa::bf16, D, 64>, 1>)                       \
  FA_FORM(backward_add_##D, fa::form_backward_gemm_dkv<fa::hopper_backward_config<fa::bf16, D, 64>>)         \
  FA_FORM(backward_dq_##D##_0,                                                                               \
          fa::form_backward_gemm_ds_k<fa::hopper_backward_config<fa::bf16, D, 64>, 0, 0, FIRST>)             \
  FA_FORM(backward_dq_##D##_1,                                                                               \
          fa::form_backward_gemm_ds_k<fa::hopper_backward_config<fa::bf16, D, 64>, 1, FIRST, REST>)
#define FA_PAIR_FORMS(D)                                                                                     \
  FA_FORM(pair_scores_##D, fa::form_backward_gemm_s_dp<fa::hopper_backward_pair_config<fa::bf16, D>, 0>)     \
  FA_FORM(pair_add_##D, fa::form_backward_gemm_dkv<fa::hopper_backward_pair_config<fa::bf16, D>>)            \
  FA_FORM(pair_dq_values_##D##_0,                                                                            \
          fa::form_pair_dq<fa::hopper_backward_pair_config<fa::bf16, D>, true, 0, 0>)                        \
  FA_FORM(pair_dq_values_##D##_1,                                                                            \
          fa::form_pair_dq<fa::hopper_backward_pair_config<fa::bf16, D>, true, 1, 1>)                        \
  FA_FORM(pair_dq_rest_##D##_0, fa::form_pair_dq<fa::hopper_backward_pair_config<fa::bf16, D>, false, 0, 1>) \
  FA_FORM(pair_dq_rest_##D##_1, fa::form_pair_dq<fa::hopper_backward_pair_config<fa::bf16, D>, false, 1, 0>)
#define FA_ALL_FORMS                                                                                         \
  FA_FORWARD_FORMS(64, 128)                                                                                  \
  FA_FORWARD_FORMS(96, 128)                                                                                  \
  FA_FORWARD_FORMS(128, 128)                                                                                 \
  FA_FORWARD_FORMS(128, 176)                                                                                 \
  FA_FORWARD_FORMS(192, 112)                                                                                 \
  FA_FORWARD_FORMS(192, 96)                                                                                  \
  FA_FORWARD_FORMS(256, 80)                                                                                  \
  FA_FORWARD_FORMS(256, 64)                                                                                  \
  FA_BACKWARD_FORMS(64, 32, 32)                                                                              \
  FA_BACKWARD_FORMS(96, 64, 32)                                                                              \
  FA_BACKWARD_FORMS(128, 64, 64)                                                                             \
  FA_PAIR_FORMS(192)                                                                                         \
  FA_PAIR_FORMS(256)

#endif
