/* Private to the case codec: reading one value, its path and its limits.
 *
 * A reader takes one case through two stages. First every key is read on its own: types, ranges, enumerations
 * and unknown keys, exactly what schema.json states (`structural` errors). Then fa_case_reader_finish sets
 * defaults and calls fa_case_validate, which checks everything in which two keys can contradict each
 * other. */
#ifndef FA_CASES_CODEC_READ_H
#define FA_CASES_CODEC_READ_H

#include "cases/codec/file.h"
#include "cases/recipe/case.h"

#include <cjson/cJSON.h>

/* One top-level key of a case and its origin: the case's own object, the defaults, or a sweep. */
typedef struct fa_case_field {
  const char *key;       /* top-level, or dotted ("mask.type": value is then NULL, only the place matters) */
  const cJSON *value;    /* borrowed */
  const char *container; /* path of the object that holds the key: "$.defaults" */
  int64_t index;         /* element of an array under the key, -1 = the value itself */
} fa_case_field;

/* The dimensions of "mla". */
typedef struct fa_case_mla {
  bool present;
  int64_t kv_lora_rank, qk_rope_head_dim, qk_nope_head_dim;
} fa_case_mla;

typedef struct fa_case_reader {
  const char *base; /* path of the case: "$.cases[3]" */
  const fa_case_field *field;
  int64_t n_fields;
  fa_error *err;
  bool structural; /* the schema states this error too */
  char path[256];  /* of the value being read, relative to the case: "mask.type" */
  /* the case under construction */
  fa_case c;
  bool has_batch, has_heads_kv, has_seqlen_k, has_head_dim_v, has_scale, has_backward, has_empty_lse;
  bool has_quantized_queries;
  bool has_leftpad_k, has_cache_leftpad, has_bias_fill, has_fill_bias, has_lists, has_density, has_from;
  bool has_block_seed, has_merge, has_parts_dtype;
  bool has_bits_density, has_bits_tree, has_head_dim;
  fa_case_mla mla;
  fa_fill bias_fill;
  int64_t slopes_shape[2];  /* of nested slopes; 0 x 0 otherwise */
  int64_t list_shape[4][4]; /* of the four block lists, of rank 3 3 4 4, in the order of the struct */
  bool list_given[4];
} fa_case_reader;

typedef fa_status fa_case_read_fn(fa_case_reader *r, const cJSON *value);
typedef struct fa_case_key {
  const char *key;
  fa_case_read_fn *read;
} fa_case_key; /* tables end with {NULL, NULL} */

/* ---- leaves (cases/codec/read.c); errors name the place, what was found and what is allowed ---- */

/* FA_ERR_INPUT; prepends the place at r->path to the message. */
fa_status fa_read_fail(fa_case_reader *r, bool structural, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The value as text for "cannot be X": shortened JSON, or `an object`, `an array`. */
const char *fa_read_describe(const cJSON *value, char buffer[80]);
size_t fa_read_push(fa_case_reader *r, const char *key); /* pass the result to fa_read_pop */
size_t fa_read_push_index(fa_case_reader *r, int64_t index);
void fa_read_pop(fa_case_reader *r, size_t mark);

fa_status fa_read_int(fa_case_reader *r, const cJSON *v, int64_t lo, int64_t hi, int64_t *out);
fa_status fa_read_number(fa_case_reader *r, const cJSON *v, double lo, double hi, double *out);
fa_status fa_read_bool(fa_case_reader *r, const cJSON *v, bool *out);
fa_status fa_read_text(fa_case_reader *r, const cJSON *v, int64_t min, int64_t max,
                       char **out); /* frees the old *out */
fa_status fa_read_u64(fa_case_reader *r, const cJSON *v, uint64_t *out);
fa_status fa_read_word(fa_case_reader *r, const cJSON *v, const char *const *words, int n_words, int *out);
fa_status fa_read_ints(fa_case_reader *r, const cJSON *v, int64_t lo, int64_t hi, int64_t min_items,
                       fa_int32_array *out);
/* Integers nested in rank levels of arrays; the innermost level may be empty. */
fa_status fa_read_nested(fa_case_reader *r, const cJSON *v, int rank, int64_t *shape, fa_int32_array *out);
fa_status fa_read_object(fa_case_reader *r, const cJSON *v, const fa_case_key *keys);
fa_status fa_read_unknown_key(fa_case_reader *r, const char *key, const fa_case_key *keys);
const fa_case_key *fa_read_find_key(const fa_case_key *keys, const char *key); /* NULL = unknown */

/* ---- cases (cases/codec/json.c) ---- */

extern const fa_case_key fa_case_keys[];
fa_status fa_case_reader_init(fa_case_reader *r, const char *base, fa_error *err);
void fa_case_reader_free(fa_case_reader *r);
/* The first stage: reads r->field[0..n_fields-1]. */
fa_status fa_case_reader_read(fa_case_reader *r);
/* The second stage: moves the finished case from r->c to *out. */
fa_status fa_case_reader_finish(fa_case_reader *r, fa_case *out);

/* ---- files (cases/codec/file.c, cases/codec/sweep.c) ---- */

#define FA_MAX_FILE_CASES 100000 /* most cases in memory at once, about 2 KiB each */
/* Bytes of all cases' arrays and texts; a sweep copies its base's. */
#define FA_MAX_FILE_BYTES ((int64_t)1 << 27)

typedef struct fa_case_file {
  const char *name, *stem; /* of the file: for messages, and for cases without a name */
  fa_generate_fn generate;
  const cJSON *defaults; /* or NULL */
  const char *text;      /* all of it, n_text bytes */
  size_t n_text;
  int64_t line; /* of the case or sweep that is read; 0: unknown */
  fa_case_list list;
  int64_t n_bytes;   /* of the arrays and texts in list */
  int64_t n_planned; /* cases of the parts read so far and of the current part */
  fa_error *err;
  bool structural;
  bool placed; /* the message names the file already */
} fa_case_file;

fa_status fa_case_file_fail(fa_case_file *f, bool structural, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reads one case from fields and moves it to f->list; name_if_missing may be NULL. */
fa_status fa_case_file_add(fa_case_file *f, const char *base, const fa_case_field *field, int64_t n_fields,
                           const char *name);
/* Checks an object of case keys that is not a case by itself: defaults, the base of a sweep. */
fa_status fa_case_file_check_part(fa_case_file *f, const char *base, const cJSON *object);
/* Fails if n more cases would be too many. */
fa_status fa_case_file_plan(fa_case_file *f, const char *base, int64_t n);
/* Adds those keys of object that are not yet in field[0..*n). */
void fa_case_fields_add(fa_case_field *field, int64_t *n, const cJSON *object, const char *container);
fa_status fa_case_file_sweep(fa_case_file *f, const char *base, const cJSON *sweep);

/* The lines, from 1, on which the first n elements of the array begin that the text's object has at this key; 0 where
 * there is none. The text is valid JSON. */
void fa_case_lines_find(const char *text, size_t n_bytes, const char *key, int64_t *line, int64_t n);

/* fa_case_file_parse that also distinguishes structural errors (stated in schema.json) from
 * contradictions. */
fa_status fa_case_file_classify(const char *text, size_t n_bytes, const char *name, fa_generate_fn generate,
                                fa_case_list *out, bool *structural, fa_error *err);

#endif
