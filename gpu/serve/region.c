#include "gpu/serve/region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void fa_serve_region_unmap(fa_serve_region *r) {
  if (r->map) munmap(r->map, r->bytes);
  memset(r, 0, sizeof *r);
}

static fa_status map_file(fa_serve_region *r, int fd, const char *path, size_t bytes, fa_error *err) {
  struct stat s;
  if (fstat(fd, &s) != 0 || (size_t)s.st_size < bytes)
    return fa_fail(err, FA_ERR_INPUT, "memory %s has less than %zu bytes", path, bytes);
  void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED)
    return fa_fail(err, FA_ERR_MEMORY, "memory %s cannot be mapped: %s", path, strerror(errno));
  r->map = map;
  r->bytes = bytes;
  snprintf(r->path, sizeof r->path, "%s", path);
  return FA_OK;
}

fa_status fa_serve_region_map(fa_serve_region *r, const char *path, size_t bytes, fa_error *err) {
  if (r->map && r->bytes == bytes && strcmp(r->path, path) == 0) return FA_OK;
  fa_serve_region_unmap(r);
  if (strlen(path) >= sizeof r->path) return fa_fail(err, FA_ERR_INPUT, "memory: the path is too long");
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return fa_fail(err, FA_ERR_INPUT, "memory %s: %s", path, strerror(errno));
  const fa_status status = map_file(r, fd, path, bytes, err);
  close(fd);
  return status;
}
