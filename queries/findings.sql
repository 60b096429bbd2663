-- Crashes, failed assertions, deadlocks and hangs; `stem replay FINDING` shows one happen.
SELECT name AS finding, program, kind, message, file, line, function, thread, run, found_at FROM findings WHERE current ORDER BY finding_id;
