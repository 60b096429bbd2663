/* Memory given to code that we do not see. What a variable held before anybody wrote it is a definition too: a read of fresh
 * memory that no recorded write explains takes the allocation's content - unless an unseen function had the address. Then
 * the collector must take it for that function's doing (an external write); so it is told who got away.
 * One record for a pointer given to a library function that is neither modelled nor instrumented. */
#include "trace/site_record.h"
#include "tracer/runtime/abi_functions.h"
#include "tracer/runtime/state.h"

void __stem_expose(void* address, void* callee) {
  if (!stem_on || !address) return;
  const uint64_t* mark = (const uint64_t*)callee;
  if (mark) { /* unknown until now: an instrumented function carries a mark before its entry */
    uint64_t first, second;
    __builtin_memcpy(&first, mark - 2, 8);
    __builtin_memcpy(&second, mark - 1, 8);
    if (first == STEM_FUNCTION_MARK_0 && second == STEM_FUNCTION_MARK_1) return;
  }
  stem_append(stem_self(), stem_head(STEM_RAW_Exposed, 0, (uint64_t)(uintptr_t)address), 0, 0, 0);
}
