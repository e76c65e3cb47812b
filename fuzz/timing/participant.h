/* Who takes turns: the candidate, its rivals, and a child that does nothing, each in a process of its own. */
#ifndef FA_FUZZ_TIMING_PARTICIPANT_H
#define FA_FUZZ_TIMING_PARTICIPANT_H

#include "fuzz/options/choose_backend.h"
#include "fuzz/timing/own.h"
#include "gpu/backends/exec_subject.h"

typedef enum fa_role { FA_ROLE_CANDIDATE, FA_ROLE_NOTHING, FA_ROLE_RIVAL } fa_role;

typedef struct fa_participant {
  fa_role role;
  char label[320]; /* for people: its backend */
  fa_choice choice;
  fa_exec_subject
      *exec; /* a child that speaks the protocol; NULL: one of our own backends, in a process of its own */
  fa_own own;
  bool frozen, by_signals; /* it stands still; one process after the other was told to */
} fa_participant;

/* spec: a backend; ignored for FA_ROLE_NOTHING. terms: of the wall around the candidate, and around each rival that is not of
 * this program; NULL: all are trusted. FA_ERR_UNSUPPORTED: of a candidate that is no program of its own. FA_ERR_INPUT: of a
 * rival too, that it cannot stand behind a wall. */
fa_status fa_participant_open(fa_participant *x, fa_role role, const char *spec,
                              const fa_backend *const *backends, const fa_wall_terms *terms, fa_error *err);
void fa_participant_close(fa_participant *x);
/* True if its control group can be stopped as one; else its processes are, one by one. */
bool fa_participant_has_freezer(const fa_participant *x);
/* Stops its processes, or lets them go on; nothing happens if they are so already. */
void fa_participant_freeze(fa_participant *x, bool frozen);

#endif
