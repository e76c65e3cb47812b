/* Every product of the kernels for sm_90a on the executor: which element goes where
 * (descriptor_forms.cuh). */
#include "tests/kernels/descriptor_forms.cuh"

#include "gpu/simt/launch.h"

#include "tests/support/check.h"

#include <string.h>

alignas(16) static float wrong;

static float run(fa_simt_kernel kernel, const char *name, fa::descriptor_params p) {
  const fa_simt_range ranges[] = {{"wrong", (const char *)&wrong, sizeof wrong, true, nullptr}};
  wrong = 0;
  p.wrong = &wrong;
  fa_simt_launch l = {};
  l.kernel = kernel;
  l.params = &p;
  l.name = name;
  l.grid = {1, 1, 1};
  l.block = {fa::DESCRIPTOR_THREADS, 1, 1};
  l.shared_bytes = fa::DESCRIPTOR_BYTES;
  l.ranges = ranges;
  l.n_ranges = 1;
  l.n_threads = 1;
  fa_simt_report r;
  fa_error err;
  CHECK_MSG(fa_simt_run(&l, &r, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(r.state == FA_SUBJECT_OK, "%s: %s", name, r.text);
  return wrong;
}

/* The GPU runs every shift; the first and the last detect most errors. */
template <class F> static void check(const char *name) {
  const int last = (F::DEPTH - 1) / 64 * 320;
  for (int one_in_a = 0; one_in_a < 2; ++one_in_a)
    for (int high = 0; high < 2; ++high)
      for (int shift = 0; shift <= last; shift += last ? last : 1) {
        const float n =
            run([](const void *p) { fa::check_form<F>(*static_cast<const fa::descriptor_params *>(p)); },
                name, {one_in_a, high, shift, nullptr});
        CHECK_MSG(n == 0, "%s, one in %s, shift %d: %g threads have something else", name,
                  one_in_a ? "A" : "B", shift, n);
      }
}

/* A form whose second panel is read from elsewhere: the test can fail. */
struct moved : fa::form_backward_gemm_dkv<fa::hopper_backward_config<fa::bf16, 128, 64>> {
  static uint32_t b(int k, int j) { return fa::element_of_tile(0, 8192 + 1024, k, j); }
};

int main() {
#define FA_FORM(name, ...) check<__VA_ARGS__>(#name);
  FA_ALL_FORMS
#undef FA_FORM
  CHECK(run([](const void *p) { fa::check_form<moved>(*static_cast<const fa::descriptor_params *>(p)); },
            "moved", {0, 0, 0, nullptr}) > 0);
  return check_done();
}
