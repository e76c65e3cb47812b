/* Limits how many processes do at once what slows down if too many do it.
 *
 * A slot is a record lock on a file without a name, which the kernel releases when a process dies. */
#ifndef FA_FUZZ_ONE_TURNS_H
#define FA_FUZZ_ONE_TURNS_H

typedef struct fa_process_slots {
  int fd; /* -1: nobody waits */
  int n;  /* number of slots */
} fa_process_slots;

/* Before forking the processes that share the slots. If it fails, nobody waits. */
fa_process_slots fa_process_slots_make(int n);
void fa_process_slots_free(fa_process_slots *t);

/* Waits for a slot, at most patience_s, because its holder may hang. At most one per process at a time.
 * Returns the argument of fa_process_slots_release; -1: none was free, continue without. */
int fa_process_slots_acquire(const fa_process_slots *t, double patience_s);
void fa_process_slots_release(const fa_process_slots *t, int turn);

#endif
