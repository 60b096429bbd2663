-- Escort branch pairs (a potential pair lies between the two outcomes) and whether they are covered.
SELECT program, def_file, def_line, def_outcome, use_file, use_line, use_outcome, state, pair, detail FROM escorts WHERE current
 ORDER BY state, def_file, def_line, use_file, use_line;
