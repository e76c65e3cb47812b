/* Turns among processes: what slows down when too many do it at once, only so many do at a time.
 *
 * A turn is a record lock on a file without a name: the kernel takes it from a process that dies. */
#ifndef FA_FUZZ_ONE_TURNS_H
#define FA_FUZZ_ONE_TURNS_H

typedef struct fa_process_slots {
  int fd; /* -1: nobody waits */
  int n;  /* how many have a turn at once */
} fa_process_slots;

/* Before the processes that are to take turns are forked. Where it cannot be had, nobody waits. */
fa_process_slots fa_process_slots_make(int n);
void fa_process_slots_free(fa_process_slots *t);

/* Waits for a turn, but not longer than patience_s: who holds one may hang. At most one in a process at a
 * time. Returns what fa_process_slots_release takes; -1: none was to be had, go on without. */
int fa_process_slots_acquire(const fa_process_slots *t, double patience_s);
void fa_process_slots_release(const fa_process_slots *t, int turn);

#endif
