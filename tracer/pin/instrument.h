// What Pin calls for every piece of code before it runs for the first time.
#ifndef STEM_TRACER_PIN_INSTRUMENT_H
#define STEM_TRACER_PIN_INSTRUMENT_H

#include "pin.H"

namespace stem_pin {

void instrument(TRACE trace, VOID* unused);
void PIN_FAST_ANALYSIS_CALL on_escape_of_frame(THREADID tid, ADDRINT value, ADDRINT site, ADDRINT sp,
                                               ADDRINT frame_pointer);

}  // namespace stem_pin

#endif
