#include "gpu/modules/cache.h"

#include "cases/base/atomic_file.h"
#include "cases/base/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  DEFAULT_MEGABYTES = 256,
  MAX_FILES = 16384,
  PATH_SIZE = 1024,
  CLAIM_TRIES = 12000,
  CLAIM_STEP_NS = 5000000
};
static const int64_t STALE_SECONDS = 3600; /* age of a temporary file whose writer must be dead */
static const char magic[8] = "FACUBIN";

void fa_cubin_cache_folder(char *path, size_t size) {
  const char *dir = getenv("FA_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n = 0;
  if (dir && *dir)
    n = snprintf(path, size, "%s", dir);
  else if (xdg && *xdg == '/') /* the specification says to ignore relative paths */
    n = snprintf(path, size, "%s/fa-verify", xdg);
  else if (home && *home)
    n = snprintf(path, size, "%s/.cache/fa-verify", home);
  if (n <= 0 || (size_t)n >= size) path[0] = 0;
}

/* Creates the folder and its parents; private, because its code will be run. */
static bool make_folder(const char *path) {
  char part[PATH_SIZE];
  const size_t n = strlen(path);
  if (n == 0 || n >= sizeof part) return false;
  for (size_t i = 1; i <= n; ++i) {
    if (path[i] != '/' && path[i] != 0) continue;
    memcpy(part, path, i);
    part[i] = 0;
    if (mkdir(part, 0700) != 0 && errno != EEXIST) return false;
  }
  return true;
}

static bool path_of(const char *key, char *path, size_t size) {
  char folder[PATH_SIZE];
  fa_cubin_cache_folder(folder, sizeof folder);
  const int n = snprintf(path, size, "%s/%s.cubin", folder, key);
  return folder[0] && n > 0 && (size_t)n < size;
}

static void checksum(const fa_cubin_cache_header *h, const void *code, char hex[65]) {
  fa_cubin_cache_header blank = *h;
  fa_sha256 s;
  memset(blank.sha256, 0, sizeof blank.sha256);
  fa_sha256_init(&s);
  fa_sha256_add(&s, &blank, sizeof blank);
  fa_sha256_add(&s, code, (size_t)h->code_bytes);
  fa_sha256_hex(&s, hex);
}

/* ---- reading ---- */

static bool read_all(int fd, void *to, size_t n) {
  for (char *at = to; n > 0;) {
    const ssize_t got = read(fd, at, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    n -= (size_t)got;
  }
  return true;
}

static bool is_header(const fa_cubin_cache_header *h, const char *key, int64_t file_bytes) {
  return memcmp(h->magic, magic, sizeof magic) == 0 && h->format == FA_CACHE_FORMAT &&
         h->header_bytes == sizeof *h && memcmp(h->key, key, sizeof h->key) == 0 && h->code_bytes > 0 &&
         h->code_bytes == (uint64_t)file_bytes - sizeof *h;
}

static void *read_file(int fd, const char *key, fa_nvrtc_identity *made_by, size_t *code_bytes) {
  struct stat s;
  fa_cubin_cache_header h;
  char hex[FA_CACHE_KEY_SIZE];
  if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || (s.st_uid != geteuid() && s.st_uid != 0)) return NULL;
  if (s.st_size <= (int64_t)sizeof h || !read_all(fd, &h, sizeof h) || !is_header(&h, key, s.st_size))
    return NULL;
  void *code = malloc((size_t)h.code_bytes);
  if (!code || !read_all(fd, code, (size_t)h.code_bytes)) {
    free(code);
    return NULL;
  }
  checksum(&h, code, hex);
  if (memcmp(hex, h.sha256, sizeof hex) != 0) {
    free(code);
    return NULL;
  }
  futimens(fd, NULL); /* marks it as used; if that fails, it is only evicted earlier */
  *made_by = h.made_by;
  *code_bytes = (size_t)h.code_bytes;
  return code;
}

void *fa_cubin_cache_read(const char *key, fa_nvrtc_identity *made_by, size_t *code_bytes) {
  char path[PATH_SIZE];
  if (!path_of(key, path, sizeof path)) return NULL;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  void *code = read_file(fd, key, made_by, code_bytes);
  close(fd);
  return code;
}

/* ---- keeping it small ---- */

typedef struct entry {
  char name[96];
  struct timespec used;
  int64_t bytes;
} entry;

static int by_time(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
  return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

static bool ends_with(const char *name, const char *end) {
  const size_t n = strlen(name), m = strlen(end);
  return n >= m && strcmp(name + n - m, end) == 0;
}

/* The cached kernels in the folder; removes what a dead writer left. Considers only names of our form. */
static int list_entries(DIR *dir, entry *out, int max) {
  int n = 0;
  for (struct dirent *d; n < max && (d = readdir(dir));) {
    struct stat s;
    const bool is_kernel = ends_with(d->d_name, ".cubin");
    if (strspn(d->d_name, "0123456789abcdef") != FA_CACHE_KEY_SIZE - 1 ||
        strlen(d->d_name) >= sizeof out->name)
      continue;
    if (fstatat(dirfd(dir), d->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode)) continue;
    if (is_kernel) {
      out[n] = (entry){.used = s.st_mtim, .bytes = s.st_size};
      memcpy(out[n++].name, d->d_name, strlen(d->d_name) + 1);
    } else if (ends_with(d->d_name, ".tmp") && s.st_mtim.tv_sec < time(NULL) - STALE_SECONDS) {
      unlinkat(dirfd(dir), d->d_name, 0);
    }
  }
  return n;
}

static int64_t limit_bytes(void) {
  const char *text = getenv("FA_CACHE_MEGABYTES");
  char *end = NULL;
  const double megabytes = text ? strtod(text, &end) : DEFAULT_MEGABYTES;
  const bool good = !text || (end != text && !*end && megabytes >= 0 && megabytes <= 1e6);
  return (int64_t)((good ? megabytes : DEFAULT_MEGABYTES) * 1048576);
}

/* The newest file stays whatever its size: somebody needs it. */
static void evict(const char *folder) {
  DIR *dir = opendir(folder);
  entry *all = dir ? malloc(MAX_FILES * sizeof *all) : NULL;
  if (all) {
    const int n = list_entries(dir, all, MAX_FILES);
    const int64_t limit = limit_bytes();
    int64_t bytes = 0;
    for (int i = 0; i < n; ++i) bytes += all[i].bytes;
    if (bytes > limit) qsort(all, (size_t)n, sizeof *all, by_time);
    for (int i = 0; i + 1 < n && bytes > limit; ++i) {
      unlinkat(dirfd(dir), all[i].name, 0);
      bytes -= all[i].bytes;
    }
  }
  free(all);
  if (dir) closedir(dir);
}

/* ---- one at a time ---- */

/* list_entries removes it if whoever made it died. */
static bool claim_path(const char *key, char *path, size_t size) {
  char folder[PATH_SIZE];
  fa_cubin_cache_folder(folder, sizeof folder);
  const int n = snprintf(path, size, "%s/%s.claim.tmp", folder, key);
  return folder[0] && n > 0 && (size_t)n < size && make_folder(folder);
}

int fa_cubin_cache_claim(const char *key) {
  static const struct timespec step = {.tv_nsec = CLAIM_STEP_NS};
  char path[PATH_SIZE];
  const int fd = claim_path(key, path, sizeof path) ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  for (int i = 0; fd >= 0 && i < CLAIM_TRIES; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK) break; /* a file system without locks */
    nanosleep(&step, NULL);
  }
  if (fd >= 0) close(fd);
  return -1;
}

void fa_cubin_cache_release(const char *key, int claim) {
  char path[PATH_SIZE];
  if (claim < 0) return;
  if (claim_path(key, path, sizeof path)) unlink(path);
  flock(claim, LOCK_UN); /* a process that was forked meanwhile has it too */
  close(claim);
}

/* ---- writing ---- */

bool fa_cubin_cache_write(const char *key, const fa_nvrtc_identity *made_by, const void *code,
                          size_t code_bytes) {
  char folder[PATH_SIZE], path[PATH_SIZE];
  fa_cubin_cache_header h;
  fa_cubin_cache_folder(folder, sizeof folder);
  if (!path_of(key, path, sizeof path) || !make_folder(folder)) return false;
  memset(&h, 0, sizeof h); /* padding between members is part of the file */
  memcpy(h.magic, magic, sizeof magic);
  h.format = FA_CACHE_FORMAT;
  h.header_bytes = sizeof h;
  snprintf(h.key, sizeof h.key, "%s", key);
  h.made_by.major = made_by->major;
  h.made_by.minor = made_by->minor;
  snprintf(h.made_by.file, sizeof h.made_by.file, "%s", made_by->file);
  h.made_by.file_bytes = made_by->file_bytes;
  h.made_by.file_mtime_ns = made_by->file_mtime_ns;
  h.code_bytes = code_bytes;
  checksum(&h, code, h.sha256);
  char *all = malloc(sizeof h + code_bytes);
  if (!all) return false;
  memcpy(all, &h, sizeof h);
  memcpy(all + sizeof h, code, code_bytes);
  const bool kept = fa_file_write_atomic(path, all, sizeof h + code_bytes, NULL) == FA_OK;
  free(all);
  if (kept) evict(folder);
  return kept;
}
