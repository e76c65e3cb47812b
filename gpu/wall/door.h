/* The door in the wall: this program, executed once more inside of it, before the candidate. It looks around, puts on what
 * only a process itself can put on, tells the judge what it has found, and becomes the candidate. So each process of a
 * candidate is known to stand behind each layer; none is taken for granted. */
#ifndef FA_GPU_WALL_DOOR_H
#define FA_GPU_WALL_DOOR_H

#include "gpu/wall/layers.h"

#include <stdint.h>

/* The first argument by which a program says that it was started as the door. */
#define FA_WALL_DOOR "behind-the-wall"

/* Its descriptors beside 0, 1 and 2. The candidate keeps the first of them alone. */
enum { FA_WALL_FD_MEMORY = 3, FA_WALL_FD_REPORT, FA_WALL_FD_PROGRAM, FA_WALL_N_FDS };

/* In a command: this program, which the candidate's plugin is loaded by. Its file is not to be seen there. */
#define FA_WALL_PROGRAM "/proc/self/fd/5"

/* Its arguments after the name of the program. */
enum {
  FA_DOOR_WORD = 1,
  FA_DOOR_LAYERS,     /* fa_layer_set, decimal */
  FA_DOOR_ADDRESSES,  /* bytes of address space, decimal; 0: not limited */
  FA_DOOR_NAMESPACES, /* fa_wall_namespaces_text of the judge */
  FA_DOOR_JUDGE,      /* path of the judge's program */
  FA_DOOR_COMMAND,    /* for /bin/sh -c */
  FA_DOOR_N_ARGUMENTS
};

/* What it tells the judge. */
typedef struct fa_wall_report {
  uint32_t magic;
  int32_t fault; /* fa_layer that does not hold, -1: all do */
  char why[200];
} fa_wall_report;
#define FA_WALL_MAGIC 0x77616c6cu

/* The namespaces of this process, as numbers with commas. */
void fa_wall_namespaces_text(char *out, size_t size);

/* Returns at once in a program that was not started as the door; else never. To be called before anything else. */
void fa_wall_door(int argc, char **argv);

#endif
