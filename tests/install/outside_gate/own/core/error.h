#error "a header of plumb included the user's core/error.h"
