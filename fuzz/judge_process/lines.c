#include "fuzz/judge_process/lines.h"
#include "cases/threads/processors.h"

#include <pthread.h>

/* Calls that wait, the oldest first. A short one, which makes data or looks closer, is not made to wait for those that have
 * many launches, one after another: they have lines of their own. */
typedef struct queue {
  pthread_mutex_t lock;
  pthread_cond_t came;
  fa_judge_call *first, **last;
} queue;

static queue queues[] = {
    {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER, .last = &queues[0].first},
    {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER, .last = &queues[1].first},
};
enum { N_QUEUES = sizeof queues / sizeof *queues };

static queue *queue_of(const fa_judge_call *c) {
  enum { FEW = 8 };
  return &queues[c->steps.n_launches > FEW];
}

static int take(queue *q, fa_judge_call **calls) {
  int n = 0;
  pthread_mutex_lock(&q->lock);
  while (!q->first) pthread_cond_wait(&q->came, &q->lock);
  for (; q->first && n < FA_JUDGE_MOST_TOGETHER; q->first = q->first->behind) calls[n++] = q->first;
  if (q->first)
    pthread_cond_signal(&q->came);
  else
    q->last = &q->first;
  pthread_mutex_unlock(&q->lock);
  return n;
}

/* How a thread that shall work has begun. */
typedef struct line {
  const fa_judge_machines *machines;
  queue *queue;
  sem_t begun;
  fa_status status;
  fa_error *err;
} line;

static void work(const fa_judge_machine *m, queue *q) {
  fa_judge_call *calls[FA_JUDGE_MOST_TOGETHER];
  fa_status status = FA_OK;
  while (status == FA_OK) {
    fa_error err = {""};
    const int n = take(q, calls);
    status = fa_judge_run_together(m, calls, n, &err);
    calls[0]->status = status;
    calls[0]->err = err;
    for (int i = 0; i < (status == FA_OK ? n : 1); ++i) sem_post(&calls[i]->done);
  }
}

/* A machine is its thread's. */
static void *begin(void *context) {
  line *l = context;
  fa_judge_machine *m = NULL;
  l->status = l->machines->open(&m, l->err);
  const bool is_there = l->status == FA_OK;
  queue *q = l->queue;
  sem_post(&l->begun); /* and nothing is known of l any more */
  if (is_there) work(m, q);
  return NULL;
}

static fa_status start_one(const fa_judge_machines *machines, queue *q, fa_error *err) {
  line l = {.machines = machines, .queue = q, .err = err};
  pthread_t thread;
  sem_init(&l.begun, 0, 0);
  if (pthread_create(&thread, NULL, begin, &l) == 0) {
    pthread_detach(thread);
    while (sem_wait(&l.begun) != 0) {}
  } else {
    l.status = fa_fail(err, FA_ERR_MEMORY, "no thread for the judge");
  }
  sem_destroy(&l.begun);
  return l.status;
}

fa_status fa_judge_lines_start(const fa_judge_machines *machines, fa_error *err) {
  const int n = machines->lines > 0 ? machines->lines : fa_processors();
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < n * N_QUEUES; ++i)
    status = start_one(machines, &queues[i % N_QUEUES], err);
  return status;
}

void fa_judge_lines_do(fa_judge_call *c) {
  sem_init(&c->done, 0, 0);
  c->behind = NULL;
  c->status = FA_OK;
  queue *q = queue_of(c);
  pthread_mutex_lock(&q->lock);
  *q->last = c;
  q->last = &c->behind;
  pthread_cond_signal(&q->came);
  pthread_mutex_unlock(&q->lock);
  while (sem_wait(&c->done) != 0) {}
  sem_destroy(&c->done);
}
