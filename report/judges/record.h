/* Who judged a case, and how often each of two judges did (docs/guide/gpu-judge.md): a record, as words and in
 * reports. */
#ifndef FA_REPORT_JUDGES_RECORD_H
#define FA_REPORT_JUDGES_RECORD_H

#include <stdbool.h>
#include <stdint.h>

struct cJSON;

/* The reference on the CPU; on a GPU, which may only say PASS; both of them. */
typedef enum fa_judged_by { FA_JUDGED_BY_CPU = 0, FA_JUDGED_BY_GPU, FA_JUDGED_BY_BOTH } fa_judged_by;

/* Who made its data: the CPU alone; a GPU what it can; the CPU, because a GPU failed at it. */
typedef enum fa_made_by { FA_MADE_BY_CPU = 0, FA_MADE_BY_GPU, FA_MADE_AFTER_GPU } fa_made_by;

#define FA_LEFT_TEXT 96
typedef struct fa_judged_how {
  fa_judged_by by;
  bool
      broken; /* the one on the GPU let a canary live (fuzz/judging/canary.h): whatever it says is worth nothing */
  fa_made_by made;
  double apart;            /* of both: how far their ratios differ, relative (fuzz/judging/agree.c) */
  char left[FA_LEFT_TEXT]; /* why the CPU judged, a few words, where a GPU was asked first; "" otherwise */
} fa_judged_how;

enum { FA_LEFT_REASONS = 16 };
typedef struct fa_judged_counts {
  int64_t gpu, both, cpu;        /* cpu: of those that a GPU was asked for first */
  double apart;                  /* of those by both: the largest */
  int64_t made_gpu, made_failed; /* data by the GPU; by the CPU after it failed */
  int n;
  struct {
    char text[FA_LEFT_TEXT];
    int64_t n;
  } left[FA_LEFT_REASONS]; /* the last one collects "other reasons" */
} fa_judged_counts;

void fa_judged_count(fa_judged_counts *c, const fa_judged_how *one);

/* "judged on the GPU: 950, by both: 1, whose ratios are 1.2e-06 apart at most, left to the CPU: 49 (30 a bias, 19 sinks); its
 * data: 900"; "" if no GPU was asked. */
#define FA_JUDGED_TEXT 1024
void fa_judged_text(const fa_judged_counts *c, char text[FA_JUDGED_TEXT]);

/* Adds "judge": "gpu" or "both", the latter's "ratios_apart", "left_to_cpu", and "data": "gpu" or "gpu failed", to a report's entry of a case; nothing
 * where no GPU was asked. */
void fa_judged_add(struct cJSON *entry, const fa_judged_how *one);
fa_judged_how fa_judged_read(const struct cJSON *entry);
/* "judges": {"gpu": 950, "both": 1, "ratios_apart": 1.2e-06, "left_to_cpu": {"a bias": 30, ...}, "data": {"gpu": 900, "failed": 0}} of a summary. */
void fa_judged_counts_add(struct cJSON *summary, const fa_judged_counts *c);
void fa_judged_counts_read(const struct cJSON *summary, fa_judged_counts *c);
/* Adds those of another summary to a summary. */
void fa_judged_counts_merge(struct cJSON *summary, const struct cJSON *other);
/* Takes an entry of a case from its summary, whose ratios_apart remains. */
void fa_judged_uncount(struct cJSON *summary, const struct cJSON *entry);

#endif
