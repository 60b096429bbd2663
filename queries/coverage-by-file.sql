-- Coverage by file (of the use).
SELECT use_file AS file, sum(class = 'covered') AS covered, sum(class = 'predicted') AS predicted,
       sum(state = 'infeasible' AND bound <> 'program') AS infeasible_in_bound, sum(class = 'unknown') AS unknown,
       sum(state = 'infeasible' AND bound = 'program') AS infeasible,
       count(*) - sum(state = 'infeasible' AND bound = 'program') AS total,
       round(100.0 * sum(class = 'covered') / nullif(count(*) - sum(state = 'infeasible' AND bound = 'program'), 0), 1) AS percent
  FROM defuse WHERE current GROUP BY use_file ORDER BY percent, total DESC;
