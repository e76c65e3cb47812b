/* A process that imports once what all children of a subject need, and forks them: of a library that takes seconds to import
 * each child then costs milliseconds.
 *
 * Whoever wants a child sends one message on the server's socket: the byte 'f' with four descriptors, the child's stdin, stdout
 * and stderr, and one end of a socket of the two. There the server says first the child's process id and, once it has ended and
 * its group has been killed, its wait status: an int32 each, in a message each. When the other end is closed, the server kills the
 * child's group. A child leads a process group of its own and dies with the server; the server ends when nobody has its socket
 * any more. python/fa_verify/_forks.py is the server.
 *
 * Nothing here is ever an error. A server that is not there, has ended, or finds that what it imported cannot be forked, forks
 * nobody, and its children are started as they are without it. */
#ifndef FA_GPU_CHILD_FORKS_H
#define FA_GPU_CHILD_FORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Starts a server: a shell command whose stdin is the socket, and whose stdout is our stderr. The socket on which it is asked, for
 * this process and all that are forked from it; -1: there is none. */
int fa_forks_start(const char *command);

/* A child of a server. */
typedef struct fa_forked {
  pid_t pid;
  int end; /* where its wait status comes */
} fa_forked;

/* Asks for a child with these three descriptors, and waits until it is there. false: there is none. lifeline: once there is something
 * to be read, or it has ended, nobody waits any longer: *gave_up. */
bool fa_forks_ask(int server, const int descriptors[3], int lifeline, fa_forked *out, bool *gave_up);

/* Whether it has ended, without waiting; the status is that of SIGKILL if its server ended first, whose death it does not outlive. */
bool fa_forked_has_ended(const fa_forked *x, int *status);

#endif
