// Which recorder a program runs under.
//
// Compiled in, if stem-cc has put it there. Else Pin where STEM was built with it, else Valgrind, for a program with debug
// information: without it nothing could be named, and a command such as `make` or a script is better run as it is, because what
// it starts may record itself.
#pragma once

#include <string>
#include <vector>

namespace stem::launch {

enum class Tracer { Compiled, Valgrind, Pin };

// "compiled", "valgrind", "pin", or "" to choose. Throws UserError when the program cannot be recorded that way.
Tracer choose_tracer(const std::string& program, const std::string& wanted);

// What comes before the program on the command line, and what has to be in its environment.
std::vector<std::string> tracer_command(Tracer tracer);
std::vector<std::string> tracer_environment(Tracer tracer);
std::string tool_said(const std::string& folder);  // Valgrind's own messages of a run, from the run's folder

// Whether a run of the program leaves a trace; why not, in a sentence, else "". wanted: as for choose_tracer.
std::string why_not_recorded(const std::string& program, const std::string& wanted = "");

// What people call it.
std::string tracer_name(Tracer tracer);

// Of the installation: "" if the recorder is there, else what is missing.
std::string missing_part(Tracer tracer);

}  // namespace stem::launch
