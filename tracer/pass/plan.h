// Gives every instruction that may become an event its site, while the code is still as the programmer's front end left it.
#pragma once

#include "tracer/pass/instrument.h"

namespace stem::pass {

void plan_sites(llvm::Function& function, Sites& sites, const Sharing& sharing, SiteMap& site_of);

}  // namespace stem::pass
