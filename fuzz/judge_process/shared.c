#include "fuzz/judge_process/shared.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

fa_status fa_judge_shared_open(int fd, fa_judge_shared *s, fa_error *err) {
  struct stat info;
  *s = (fa_judge_shared){.fd = fd};
  void *at = MAP_FAILED; /* behind the end of a file, an access is a signal */
  if (fstat(fd, &info) == 0 && info.st_size == (off_t)FA_JUDGE_SHARED_BYTES)
    at = mmap(NULL, FA_JUDGE_SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (at == MAP_FAILED) {
    close(fd);
    s->fd = -1;
    return fa_fail(err, FA_ERR_MEMORY, "no memory to share with the judge's process: %s", strerror(errno));
  }
  madvise(at, FA_JUDGE_SHARED_BYTES, MADV_DONTDUMP);
  s->memory = at;
  return FA_OK;
}

fa_status fa_judge_shared_make(fa_judge_shared *s, fa_error *err) {
  const int fd = memfd_create("fa-verify-judge", MFD_CLOEXEC);
  *s = (fa_judge_shared){.fd = -1};
  if (fd < 0 || ftruncate(fd, (off_t)FA_JUDGE_SHARED_BYTES) != 0) {
    if (fd >= 0) close(fd);
    return fa_fail(err, FA_ERR_MEMORY, "no memory to share with the judge's process: %s", strerror(errno));
  }
  return fa_judge_shared_open(fd, s, err);
}

void fa_judge_shared_forget(fa_judge_shared *s, size_t bytes) {
  madvise(s->memory, bytes, MADV_REMOVE);
}

void fa_judge_shared_close(fa_judge_shared *s) {
  if (s->memory) munmap(s->memory, FA_JUDGE_SHARED_BYTES);
  if (s->memory) close(s->fd);
  *s = (fa_judge_shared){.fd = -1};
}
