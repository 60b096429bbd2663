-- Predicted pairs that no recorded run has exercised; `stem replay PAIR` shows one happen.
SELECT name AS pair, variable, def_file, def_line, def_function, use_file, use_line, use_function, cross_thread, state, relation, evidence
  FROM uncovered WHERE state IN ('implicit confirmed', 'implicit', 'diverged');
