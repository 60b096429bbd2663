-- Coverage of each program, with its denominator.
SELECT * FROM coverage;
