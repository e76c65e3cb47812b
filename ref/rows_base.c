#define FA_ROWS_NAME fa_rows_base
#include "ref/rows_body.h"
