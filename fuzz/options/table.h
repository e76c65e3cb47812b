/* The commands and the options, as data. Parsing, help, the manual page and completions are all made from these
 * tables. To add an option: a row in table.c and a member of fa_cli. */
#ifndef FA_FUZZ_OPTIONS_TABLE_H
#define FA_FUZZ_OPTIONS_TABLE_H

#include "fuzz/options/command.h"

/* A bit for each command. */
enum {
  FA_ON_RUN = 1,
  FA_ON_RANDOM = 2,
  FA_ON_REPRO = 4,
  FA_ON_CHECK = 8,
  FA_ON_GOLDEN = 16,
  FA_ON_BENCH = 32,
  FA_ON_LIST = 64,
  FA_ON_REPORT = 128,
  FA_ON_SHRINK = 256,
  FA_ON_PROBE = 512,
  FA_ON_ALL = 1023,
  FA_ON_ABOUT = 1024, /* commands about the program itself */
  FA_ON_SERVE = 2048
};

/* How the text after an option is read, and so the type of its member of fa_cli. */
typedef enum fa_option_kind {
  FA_KIND_FLAG,    /* bool; takes no value */
  FA_KIND_STRING,  /* const char * */
  FA_KIND_WORD,    /* fa_words: one more each time that it is given */
  FA_KIND_WORDS,   /* fa_words: as many as follow */
  FA_KIND_COUNT,   /* int64_t, >= 1 */
  FA_KIND_U64,     /* uint64_t */
  FA_KIND_SECONDS, /* double, > 0 */
  FA_KIND_BYTES,   /* int64_t: a number with K, M, G or T */
  FA_KIND_SAMPLE   /* fa_sample */
} fa_option_kind;

/* What a value is. */
typedef enum fa_value_kind {
  FA_VALUE_ANY,         /* no value, or a number, a name, a pattern: nothing to choose from */
  FA_VALUE_ONE_OF,      /* one of the words that the row lists, separated by | */
  FA_VALUE_CASES,       /* a case file, or the name of one that is installed */
  FA_VALUE_JSON,        /* *.json */
  FA_VALUE_SAFETENSORS, /* *.safetensors */
  FA_VALUE_FILE,        /* any file */
  FA_VALUE_FOLDER,
  FA_VALUE_BACKEND, /* NAME or NAME:ARGUMENT */
  FA_VALUE_PROFILE, /* of random cases */
  FA_VALUE_LAW,
  FA_VALUE_LAYER /* of defence against an untrusted kernel */
} fa_value_kind;

typedef struct fa_example {
  const char *command; /* as typed into a shell */
  const char *shows;
} fa_example;

enum { FA_MAX_FORMS = 3, FA_MAX_WORDS = 2, FA_MAX_EXAMPLES = 5 };

typedef struct fa_command_row {
  const char *name;
  unsigned bit;
  const char *brief;               /* its arguments, in the list of commands */
  const char *does;                /* a line */
  const char *forms[FA_MAX_FORMS]; /* its arguments in each way to use it; NULL behind the last */
  const char *about;               /* a sentence or more */
  struct {
    fa_value_kind kind;
    const char *one_of;                 /* what it may be, separated by | */
  } words[FA_MAX_WORDS];                /* what stands behind the command and belongs to no option */
  bool repeats;                         /* any number of the last of these */
  fa_example examples[FA_MAX_EXAMPLES]; /* a NULL command behind the last */
  const char *exit_codes;               /* what they mean here, where that is special; else NULL */
} fa_command_row;

/* What an option is about: help prints the options of a theme together. */
typedef enum fa_theme {
  FA_THEME_CASES,
  FA_THEME_SUBJECT,
  FA_THEME_JUDGING,
  FA_THEME_RUNNING,
  FA_THEME_WRITTEN,
  FA_THEME_PRINTED,
  FA_N_THEMES
} fa_theme;

typedef struct fa_option_row {
  const char *name; /* without -- */
  char letter;      /* 0 = none */
  fa_option_kind kind;
  fa_value_kind value;
  const char *argument; /* what its value is called, or may be; NULL for flags */
  unsigned commands;    /* that take it */
  fa_theme theme;
  size_t offset;    /* of its member in fa_cli */
  const char *does; /* a line */
} fa_option_row;

extern const fa_command_row fa_commands[];
extern const int fa_n_commands;
extern const fa_option_row fa_options[];
extern const int fa_n_options;

/* NULL: there is none. */
const fa_command_row *fa_command_find(const char *name);
/* As a heading. */
const char *fa_theme_title(fa_theme theme);

/* What else a manual says, in rows of a name and what it means; NULL names end them. */
typedef struct fa_fact {
  const char *name, *means;
} fa_fact;

extern const fa_fact fa_exit_codes[];
extern const fa_fact fa_environment[]; /* variables, separated by ", " */
extern const fa_fact fa_files[];

#endif
