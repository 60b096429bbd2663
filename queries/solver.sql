-- Statistics of the analysis of each run.
SELECT 'r' || run_id AS run, name, value FROM solver_stat ORDER BY run_id, name;
