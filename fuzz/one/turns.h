/* Turns among processes: what slows down when too many do it at once, only so many do at a time.
 *
 * A turn is a record lock on a file without a name: the kernel takes it from a process that dies. */
#ifndef FA_FUZZ_ONE_TURNS_H
#define FA_FUZZ_ONE_TURNS_H

typedef struct fa_turns {
  int fd; /* -1: nobody waits */
  int n;  /* how many have a turn at once */
} fa_turns;

/* Before the processes that are to take turns are forked. Where it cannot be had, nobody waits. */
fa_turns fa_turns_make(int n);
void fa_turns_free(fa_turns *t);

/* Waits for a turn, but not longer than patience_s: who holds one may hang. At most one in a process at a
 * time. Returns what fa_turns_end takes; -1: none was to be had, go on without. */
int fa_turns_begin(const fa_turns *t, double patience_s);
void fa_turns_end(const fa_turns *t, int turn);

#endif
