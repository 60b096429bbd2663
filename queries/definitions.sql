-- Every definition and its fate: used, undecided, unused (in no trace or prediction), dead (statically proved).
SELECT variable, file, line, function, executed, fate FROM definitions ORDER BY file, line, variable;
