/* It moved down, to where gpu/ may use it too. */
#include "cases/atomic_file.h"
