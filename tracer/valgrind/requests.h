/* What the preload asks of the tool: client requests, one for each operation of the model (tracer/binary/ops.def).
 * Arguments: object, a, b, the address that the wrapped function returns to. */
#ifndef STEM_TRACER_VALGRIND_REQUESTS_H
#define STEM_TRACER_VALGRIND_REQUESTS_H

#define STEM_REQUEST_BASE VG_USERREQ_TOOL_BASE('S', 'T')

#endif
