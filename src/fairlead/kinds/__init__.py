"""What each kind of job is and how it is written: a plain module for each, with the same names in all."""
