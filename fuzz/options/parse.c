/* argv into what was asked for. */
#include "fuzz/options/choices.h"
#include "fuzz/options/parts.h"

#include <stdlib.h>
#include <string.h>

static bool looks_like_option(const char *text) {
  return text[0] == '-' && text[1] != 0;
}

static void set_flag(fa_cli *cli, const fa_option_row *o) {
  *(bool *)((char *)cli + o->offset) = true;
  cli->given |= (uint64_t)1 << (o - fa_options);
}

/* -qv: letters of options without a value. False: not all are. */
static bool set_flags(fa_cli *cli, const char *letters) {
  const fa_option_row *found[8];
  int n = 0;
  for (; letters[n] && n < 8; ++n) {
    found[n] = NULL;
    for (int i = 0; i < fa_n_options; ++i)
      if (fa_options[i].letter == letters[n] && fa_options[i].kind == FA_KIND_FLAG) found[n] = &fa_options[i];
    if (!found[n]) return false;
  }
  if (letters[n]) return false;
  for (int i = 0; i < n; ++i) set_flag(cli, found[i]);
  return true;
}

/* Parses the option at argv[*at] with its value; *at ends on the last argument used. */
static int parse_option(fa_cli *cli, int *at) {
  const char *given = cli->argv[*at], *value = NULL;
  const fa_option_row *o = NULL;
  bool is_long = given[1] == '-';
  size_t n = is_long ? strcspn(given + 2, "=") : 0;
  for (int i = 0; i < fa_n_options && !o; ++i) {
    if (is_long && strlen(fa_options[i].name) == n && strncmp(given + 2, fa_options[i].name, n) == 0)
      o = &fa_options[i];
    if (!is_long && fa_options[i].letter == given[1] && (given[2] == 0 || fa_options[i].argument))
      o = &fa_options[i];
  }
  if (!o && !is_long && set_flags(cli, given + 1)) return 0;
  if (!o) return fa_cli_unknown_option(given);
  if (is_long && given[2 + n] == '=') value = given + 3 + n;
  if (!is_long && given[2]) value = given + 2;
  if (o->kind == FA_KIND_FLAG) {
    if (value) return fa_cli_usage_error("--%s takes no value", o->name);
    set_flag(cli, o);
    return 0;
  }
  cli->given |= (uint64_t)1 << (o - fa_options);
  if (!value) {
    if (*at + 1 >= cli->argc) return fa_cli_usage_error("--%s needs a value: %s", o->name, o->argument);
    value = cli->argv[++*at];
    if (looks_like_option(value) && o->kind != FA_KIND_WORD)
      return fa_cli_usage_error("--%s needs a value: %s; %s is an option", o->name, o->argument, value);
  }
  int code = fa_cli_set_value(cli, o, value);
  while (code == 0 && o->kind == FA_KIND_WORDS && *at + 1 < cli->argc &&
         !looks_like_option(cli->argv[*at + 1]))
    code = fa_cli_set_value(cli, o, cli->argv[++*at]);
  return code;
}

/* Every option given must apply to the command. */
static int check_options_fit(const fa_cli *cli, unsigned bit) {
  for (int i = 0; i < fa_n_options; ++i)
    if (cli->given >> i & 1 && !(fa_options[i].commands & bit))
      return fa_cli_usage_error("--%s means nothing to the command %s", fa_options[i].name, cli->command);
  if (fa_sample_is_asked(&cli->sample) && (cli->laws || cli->law.n))
    return fa_cli_usage_error("--sample: laws compare two runs, all of them; it is for the reference");
  if (fa_sample_is_asked(&cli->sample) && cli->untrusted)
    return fa_cli_usage_error("--sample: not with --untrusted, since a kernel could know the places");
  if (cli->judge && strcmp(cli->judge, "cpu") != 0 && (cli->laws || cli->law.n))
    return fa_cli_usage_error("--judge: laws need no judge");
  if (cli->judge && strcmp(cli->judge, "cpu") != 0 && cli->untrusted)
    return fa_cli_usage_error("--judge: not with --untrusted, since a kernel may reach what is on its GPU");
  return fa_cli_check_outputs(cli);
}

/* Words that stand where the command has a list of them must be of the list. */
static int check_words(const fa_cli *cli, const fa_command_row *row) {
  for (int i = 0; i < cli->words.n && i < FA_MAX_WORDS; ++i) {
    fa_choices choices;
    if (row->words[i].kind != FA_VALUE_ONE_OF) continue;
    fa_choices_of(FA_VALUE_ONE_OF, row->words[i].one_of, cli->backends, &choices);
    if (fa_choices_check(&choices, row->name, cli->words.v[i])) return FA_EXIT_USAGE;
  }
  return 0;
}

/* `help COMMAND` is `COMMAND --help`, and `help` alone is `--help`. */
static int settle_help(fa_cli *cli) {
  if (cli->words.n > 1)
    return fa_cli_usage_error("help: one command at a time; what is %s?", cli->words.v[1]);
  cli->help = true;
  cli->command = cli->words.n ? cli->words.v[0] : NULL;
  return cli->command && !fa_command_find(cli->command) ? fa_cli_unknown_command(cli->command) : 0;
}

static int settle_command(fa_cli *cli) {
  if (cli->version) return 0;
  if (!cli->command && (cli->cases.n || cli->case_text.n || cli->tier)) cli->command = "run";
  if (!cli->command) {
    if (!cli->help) fa_cli_print_help(cli, stderr);
    return cli->help ? 0 : FA_EXIT_USAGE;
  }
  const fa_command_row *row = fa_command_find(cli->command);
  if (!row) return fa_cli_unknown_command(cli->command);
  if (cli->help) return 0;
  if (strcmp(cli->command, "help") == 0) return settle_help(cli);
  const int code = check_options_fit(cli, row->bit);
  return code ? code : check_words(cli, row);
}

int fa_cli_parse(fa_cli *cli, int argc, char **argv) {
  const fa_backend *const *backends = cli->backends;
  *cli = (fa_cli){
      .program = argv[0], .argc = argc, .argv = argv, .backends = backends, .timeout_s = 300, .seed = 1};
  bool options_over = false;
  for (int i = 1; i < argc; ++i) {
    if (!options_over && strcmp(argv[i], "--") == 0) {
      options_over = true;
    } else if (!options_over && looks_like_option(argv[i])) {
      int code = parse_option(cli, &i);
      if (code) return code;
    } else if (!cli->command) {
      cli->command = argv[i];
    } else {
      fa_words_add(&cli->words, argv[i]);
    }
  }
  return settle_command(cli);
}

void fa_cli_free(fa_cli *cli) {
  free(cli->words.v);
  free(cli->cases.v);
  free(cli->case_text.v);
  free(cli->backend.v);
  free(cli->law.v);
  free(cli->dtype.v);
  free(cli->without.v);
  free(cli->allow.v);
  free(cli->hide.v);
  free(cli->rival.v);
}
