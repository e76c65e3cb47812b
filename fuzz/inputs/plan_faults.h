/* What no plan may be: launches that a driver would refuse, parameters that are not there, memory beyond the workspace. */
#ifndef FA_FUZZ_INPUTS_PLAN_FAULTS_H
#define FA_FUZZ_INPUTS_PLAN_FAULTS_H

#include "gpu/plan/make.h"

/* False: *why says what is wrong with it. device: that it was made for; NULL: any. */
bool fa_plan_is_sound(const fa_plan *x, const fa_kernel_device *device, fa_error *why);

/* Two sound plans of one call that were zeroed before, for workspaces at these addresses: they are the same but for these, and
 * every address in the workspace that a launch gets is in its workspace_bytes. */
bool fa_plans_are_alike(const fa_plan *x, const char *x_workspace, const fa_plan *y, const char *y_workspace,
                        fa_error *why);

#endif
