-- Definitions that nobody can use: no read takes them in any trace or prediction (dead: static analysis proves it).
SELECT variable, file, line, function, executed, fate FROM definitions WHERE fate IN ('unused', 'dead') ORDER BY fate, file, line;
