/* The command line that serves a backend in another process. */
#ifndef FA_GPU_SERVE_COMMAND_H
#define FA_GPU_SERVE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Appends text as one word of a command for sh, whatever characters it has. False: there is no room, and the command
 * is as before. */
bool fa_serve_add_word(char *command, size_t size, const char *text);

/* "exec '/usr/bin/fa-verify' 'serve' '--backend' 'plugin:./mine.so'": what sh is to run so that this very program
 * serves the backend (spec: as behind --backend). False: it does not fit, or the program's own path cannot be found
 * out. */
bool fa_serve_command(const char *spec, char *command, size_t size);

/* The same as words for execv, of which the first is the program's absolute path: program must hold PATH_MAX bytes, and
 * argv gets five pointers, the last NULL, into program, spec and constants. */
bool fa_serve_words(const char *spec, char *program, const char *argv[5]);

#ifdef __cplusplus
}
#endif

#endif
