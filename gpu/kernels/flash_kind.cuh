/* What a kernel is compiled for. All but `general` want rows that begin on 16 bytes. */
#ifndef FA_GPU_KERNELS_FLASH_KIND_CUH
#define FA_GPU_KERNELS_FLASH_KIND_CUH

namespace fa {

enum flash_kind {
  plain,
  modified, /* softcap, ALiBi */
  dropout,
  general /* everything, as the parameters say: unaligned rows, softcap and ALiBi, dropout, p_debug */
};

} // namespace fa

#endif
