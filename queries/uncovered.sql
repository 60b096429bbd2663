-- Everything that coverage counts and no recorded run has shown, the most telling first.
SELECT name AS pair, variable, def_file, def_line, use_file, use_line, cross_thread, state, bound, evidence FROM uncovered;
