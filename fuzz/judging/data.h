/* A case's tensors, made on the judge's machine where that can make them (fuzz/judging/fill.h), else on the CPU. */
#ifndef FA_FUZZ_JUDGING_DATA_H
#define FA_FUZZ_JUDGING_DATA_H

#include "cases/recipe/case.h"
#include "ref/cuda/machine.h"
#include "report/judges/record.h"

typedef struct fa_data_config {
  fa_judge_machine *machine; /* NULL: the CPU alone */
  bool audit;                /* the CPU makes them too; else one case in a thousand */
  int n_threads;
} fa_data_config;

/* A machine that fails leaves the data to the CPU. FA_ERR_DEVICE: what it made is not what the CPU makes, byte for byte, and
 * err says where. *made: by whom. */
fa_status fa_make_data(const fa_case *c, const fa_data_config *config, fa_tensors *out, fa_made_by *made,
                       fa_error *err);

/* Nobody who is judged can know which case: one in a thousand. */
bool fa_is_audited(void);

#endif
