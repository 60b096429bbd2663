// Type layouts as strings (trace/site_record.h), so that an offset into an object can be shown as a field path.
#pragma once

#include "tracer/pass/naming.h"

namespace stem::pass {

// "" if nothing is known. Nested types are written out; what would not fit is cut to its size.
std::string layout_of(TypeRef type);

}  // namespace stem::pass
